package store

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// badgerLogger routes Badger's lines to slog, one level lower than Badger
// thinks: what matters to an operator comes back as an error of the store.
type badgerLogger struct{ log *slog.Logger }

func (l badgerLogger) Errorf(format string, args ...any)   { l.write(slog.LevelWarn, format, args) }
func (l badgerLogger) Warningf(format string, args ...any) { l.write(slog.LevelInfo, format, args) }
func (l badgerLogger) Infof(format string, args ...any)    { l.write(slog.LevelDebug, format, args) }
func (l badgerLogger) Debugf(string, ...any)               {}

func (l badgerLogger) write(level slog.Level, format string, args []any) {
	if l.log == nil {
		return
	}
	l.log.Log(context.Background(), level, strings.TrimSpace(fmt.Sprintf(format, args...)), "component", "badger")
}

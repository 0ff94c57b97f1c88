package mesh

import (
	"context"
	"log/slog"
	"sync"

	"github.com/libp2p/go-libp2p/gologshim"
)

var adoptOnce sync.Once

// adoptLog routes libp2p's own log, which is one per process and would go to
// stderr, to the first mesh's logger: errors only, since libp2p warns of what is
// usual in a network.
func adoptLog(log *slog.Logger) {
	adoptOnce.Do(func() { gologshim.SetDefaultHandler(errorsOnly{log.Handler()}) })
}

type errorsOnly struct{ slog.Handler }

func (h errorsOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

func (h errorsOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorsOnly{h.Handler.WithAttrs(attrs)}
}

func (h errorsOnly) WithGroup(name string) slog.Handler {
	return errorsOnly{h.Handler.WithGroup(name)}
}

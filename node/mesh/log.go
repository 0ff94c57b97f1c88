package mesh

import (
	"context"
	"log"
	"log/slog"
	"sync"

	"github.com/libp2p/go-libp2p/gologshim"
)

var adoptOnce sync.Once

// adoptLog routes the logs that are one per process and would go to stderr to the
// first mesh's logger: of libp2p's errors only, since it warns of what is usual in
// a network; of Go's standard log, where some libraries write, all as details.
func adoptLog(to *slog.Logger) {
	adoptOnce.Do(func() {
		gologshim.SetDefaultHandler(errorsOnly{to.Handler()})
		log.SetOutput(slog.NewLogLogger(to.Handler(), slog.LevelDebug).Writer())
		log.SetFlags(0)
	})
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

package mesh

import (
	"log/slog"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// unwanted is what the log was told of connections without admission. Somebody who was evicted, or
// whom this node refuses, comes again every half minute for as long as its node runs: it is told again only
// when the reason is another, or after a long while.
type unwanted struct {
	mu   sync.Mutex // guards told
	told map[workflow.PartnerID]toldOf
}

type toldOf struct {
	reason string
	at     time.Time
}

const (
	unwantedAgain = 12 * time.Hour
	unwantedMost  = 256 // that are remembered: strangers can make as many IDs as they like
)

// level is that at which the log is told of a refusal.
func (u *unwanted) level(p workflow.PartnerID, reason string, now time.Time) slog.Level {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, known := u.told[p]; known && last.reason == reason && now.Sub(last.at) < unwantedAgain {
		return slog.LevelDebug
	}
	if u.told == nil || len(u.told) >= unwantedMost {
		u.told = map[workflow.PartnerID]toldOf{}
	}
	u.told[p] = toldOf{reason, now}
	return slog.LevelInfo
}

package mesh

import (
	"log/slog"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// unwanted is what the log was told of connections without admission. Somebody who was evicted, or
// whom this node refuses, comes again every half minute for as long as its node runs: of each reason it is told
// once, and again after a long while.
type unwanted struct {
	mu   sync.Mutex // guards told
	told map[refused]time.Time
}

type refused struct {
	partner workflow.PartnerID
	reason  string
}

const (
	unwantedAgain = 12 * time.Hour
	unwantedMost  = 256 // that are remembered: strangers can make as many IDs as they like
)

// level is that at which the log is told of a refusal.
func (u *unwanted) level(p workflow.PartnerID, reason string, now time.Time) slog.Level {
	u.mu.Lock()
	defer u.mu.Unlock()
	this := refused{p, reason}
	if last, known := u.told[this]; known && now.Sub(last) < unwantedAgain {
		return slog.LevelDebug
	}
	if u.told == nil || len(u.told) >= unwantedMost {
		u.told = map[refused]time.Time{}
	}
	u.told[this] = now
	return slog.LevelInfo
}

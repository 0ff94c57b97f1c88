package node

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/worklists"
)

// prefetchEvery is how often it is looked which files are to come before they are needed.
const prefetchEvery = 30 * time.Second

// prefetcher has the files come here that users' items need, before they are needed.
type prefetcher struct {
	*contacts
	crew      *crew
	worklists *worklists.Desk
	filing    *filing.Desk
	absence   *absence

	next    time.Duration // Awake; Tick's alone
	was     bool          // Tick's alone
	running chan struct{} // capacity 1: one element while files come
}

// tick has it looked which files are to come, and returns after what time to call it again.
func (p *prefetcher) tick(now moment.Now) time.Duration {
	wants := p.worklists.Prefetches()
	if wants && !p.was {
		p.next = now.Awake // at once after it was switched on
	}
	p.was = wants
	if _, away := p.absence.away(); away || !wants || p.filing.Files == nil {
		return moment.Never
	}
	if now.Awake < p.next {
		return p.next - now.Awake
	}
	p.next = now.Awake + prefetchEvery
	select {
	case p.running <- struct{}{}:
		p.crew.running.Go(func() {
			defer func() { <-p.running }()
			ctx, cancel := p.filing.UntilStopped()
			defer cancel()
			p.fetch(ctx)
		})
	default: // files still come
	}
	return prefetchEvery
}

// fetch has files come one after the other, until nobody wants them any more. What nobody
// gives now is left for the next time.
func (p *prefetcher) fetch(ctx context.Context) {
	list, err := p.worklists.Ahead(ctx)
	if err != nil {
		p.log.Warn("it cannot be told which files are to come before they are needed", "error", err)
		return
	}
	for _, c := range list {
		if !p.worklists.Prefetches() {
			return
		}
		if err := p.filing.FetchWhile(ctx, c, func() {}); err != nil && ctx.Err() == nil {
			p.log.Info("a file does not come before it is needed", "file", c.File.Name, "why", err)
		}
	}
}

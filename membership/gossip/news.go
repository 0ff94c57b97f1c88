package gossip

import (
	"crypto/sha256"
	"fmt"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// topic is what news is published under. It carries no mesh's name: connections
// are between members of one mesh only.
const topic = "/mutirao/news/1.0.0"

// contentID names news by its content: what several pass on spreads once.
func contentID(m *pb.Message) string {
	sum := sha256.Sum256(m.GetData())
	return string(sum[:16])
}

func (g *Gossip) startPubSub() error {
	var err error
	if g.pubsub, err = pubsub.NewGossipSub(g.ctx, g.cfg.Host, g.cfg.Timing.pubsub()...); err != nil {
		return fmt.Errorf("gossip: pubsub: %w", err)
	}
	if g.topic, err = g.pubsub.Join(topic); err != nil {
		return fmt.Errorf("gossip: topic %s: %w", topic, err)
	}
	if g.news, err = g.topic.Subscribe(); err != nil {
		return fmt.Errorf("gossip: topic %s: %w", topic, err)
	}
	return nil
}

// Publish spreads news to all partners that can be reached somehow: signed, at
// most MaxNews bytes. It may be lost.
func (g *Gossip) Publish(news []byte) {
	if len(news) == 0 || len(news) > MaxNews {
		g.cfg.Logger.Warn("news not published", "bytes", len(news), "most", MaxNews)
		return
	}
	select {
	case g.outgoing <- news:
	default:
		g.cfg.Logger.Warn("news not published: too much waits", "waiting", outgoingNews)
	}
}

func (g *Gossip) publish() {
	for {
		select {
		case <-g.ctx.Done():
			return
		case news := <-g.outgoing:
			if err := g.topic.Publish(g.ctx, news); err != nil && g.ctx.Err() == nil {
				g.cfg.Logger.Debug("news not published", "error", err)
			}
		}
	}
}

// receive hands news over, not our own.
func (g *Gossip) receive() {
	for {
		m, err := g.news.Next(g.ctx)
		if err != nil {
			return
		}
		author := workflow.PartnerID(m.GetFrom().String())
		if author != g.cfg.Mesh.ID() && len(m.Data) <= MaxNews {
			g.cfg.Handler.OnNews(author, m.Data)
		}
	}
}

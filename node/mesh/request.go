package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A request is a stream of its own: a frame there, and back a byte that says
// whether it went well and a frame with the response or the error's text.
const (
	answerOK    = 0
	answerError = 1
)

// RequestError is what the other side's handler returned.
type RequestError struct {
	// Text is at most 256 bytes, printable.
	Text string
}

func (e *RequestError) Error() string { return e.Text }

// Answer is the text: invitation.Answer.
func (e *RequestError) Answer() string { return e.Text }

// Request asks p and waits for the answer: over the connection that exists, or
// over one made from addrs and the address book. The other need not have admitted
// us if its handler is open to strangers. An error of the other's handler is a
// *RequestError. It may take Limits.RequestTimeout, or as long as ctx says where that
// has wire.WithCame.
func (m *Mesh) Request(
	ctx context.Context, p workflow.PartnerID, addrs []string, proto string, req []byte,
) ([]byte, error) {
	if len(req) > m.limits.Frame-1 {
		return nil, fmt.Errorf("mesh: a request of %d bytes, at most %d are possible", len(req), m.limits.Frame-1)
	}
	if wire.Came(ctx) == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.limits.RequestTimeout)
		defer cancel()
	}
	l, err := m.linkFor(ctx, p, addrs)
	if err != nil {
		return nil, err
	}
	s, err := l.openAsking(ctx, protocol.ID(proto))
	if err != nil {
		return nil, fmt.Errorf("mesh: cannot ask %s: %w", p, err)
	}
	defer s.Reset()
	resp, err := exchange(ctx, s, req, m.limits.Frame)
	if err != nil {
		return nil, fmt.Errorf("mesh: asking %s for %s: %w", p, proto, err)
	}
	return resp, nil
}

// linkFor returns a link on which the hello is over, whatever its outcome.
func (m *Mesh) linkFor(ctx context.Context, p workflow.PartnerID, addrs []string) (*link, error) {
	id, err := peerID(p)
	if err != nil {
		return nil, err
	}
	given, bad := parseAddrs(addrs, m.limits.Addresses)
	m.mu.Lock()
	if m.closed || id == m.host.ID() {
		m.mu.Unlock()
		return nil, fmt.Errorf("mesh: %s: %w", p, ErrNotConnected)
	}
	to := m.partnerLocked(id)
	known := append(given, to.knownLocked()...)
	m.forgetLocked(to)
	m.mu.Unlock()
	l, err := m.dial(ctx, to, known)
	if err != nil {
		return nil, errors.Join(err, bad)
	}
	var refused *RefusedError
	if err := l.wait(ctx); err != nil && !errors.As(err, &refused) {
		return nil, fmt.Errorf("mesh: no hello with %s: %w", p, err)
	}
	return l, nil
}

// exchange is the asking side of a request. The context's end resets the stream.
func exchange(ctx context.Context, s network.Stream, req []byte, limit int) ([]byte, error) {
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	answer, err := ask(s, req, limit, wire.Came(ctx))
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer, err
}

func ask(s network.Stream, req []byte, limit int, came func(int)) ([]byte, error) {
	if err := write(s, append([]byte{answerOK}, req...)); err != nil {
		return nil, err
	}
	// An error here is harmless: the other may have answered and gone already.
	_ = s.CloseWrite()
	answer, err := readFrame(bufio.NewReader(tallied{s, came}), limit)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return readAnswer(answer)
}

// tallied says what is read of an answer, at most answerBlock at a time: so the other side, which is told what was
// taken, sees a slow reader take some all the time, and not much of it now and then.
type tallied struct {
	io.Reader
	came func(bytes int) // nil: nobody wants to know
}

func (r tallied) Read(b []byte) (int, error) {
	if r.came == nil {
		return r.Reader.Read(b)
	}
	n, err := r.Reader.Read(b[:min(len(b), answerBlock)])
	if n > 0 {
		r.came(n)
	}
	return n, err
}

func readAnswer(answer []byte) ([]byte, error) {
	switch {
	case answer[0] == answerOK:
		return answer[1:], nil
	case answer[0] == answerError && len(answer) <= 1+maxReason:
		return nil, &RequestError{Text: printable(answer[1:])}
	}
	return nil, fmt.Errorf("%w answer", errMalformed)
}

// HandleRequest answers requests under a protocol ID ("/mutirao/join/1.0.0"). With
// openToStrangers those who were not admitted may ask, too: one request of at most
// Limits.Hello bytes at a time (the next waits for the end of the one before), which has to come within Limits.HelloTimeout. fn
// may be called from many goroutines, at most Limits.Requests at a time; of its
// error the other side gets the first 256 bytes.
func (m *Mesh) HandleRequest(
	proto string, openToStrangers bool, fn func(peer workflow.PartnerID, req []byte) ([]byte, error),
) {
	m.host.SetStreamHandler(protocol.ID(proto), func(s network.Stream) {
		l := m.linkOf(s.Conn())
		if l == nil || !l.permits(openToStrangers) || !l.mayAsk() {
			s.Reset()
			return
		}
		m.spawn(func() {
			defer l.asking.Add(-1)
			if !l.admitted() {
				l.turn.Lock()
				defer l.turn.Unlock()
			}
			if err := l.answer(s, fn); err != nil {
				s.Reset()
				return
			}
			s.Close()
		})
	})
}

// mayAsk takes one of the places that the other side's requests have. A stranger has one,
// and one more to wait in: it may ask again the moment that it has read an answer, and that
// is before this side knows that the answer was written.
func (l *link) mayAsk() bool {
	most := int32(l.mesh.limits.RequestsPerPeer)
	if !l.admitted() {
		most = 2
	}
	if l.asking.Add(1) > most {
		l.asking.Add(-1)
		l.mesh.counters.refuse(ReasonTooMany)
		return false
	}
	return true
}

// answer is the answering side of a request. It takes one of the places that all
// requests share only when the request is there.
func (l *link) answer(s network.Stream, fn func(workflow.PartnerID, []byte) ([]byte, error)) error {
	req, err := l.readRequest(s)
	if err != nil {
		return err
	}
	select {
	case l.mesh.requests <- struct{}{}:
		defer func() { <-l.mesh.requests }()
	default:
		l.mesh.counters.refuse(ReasonTooMany)
		return errors.New("too many requests")
	}
	limit := l.mesh.limits.Frame
	resp, err := fn(l.partner.id, req)
	if err == nil && len(resp) > limit-1 {
		err = fmt.Errorf("the answer has %d bytes, at most %d are possible", len(resp), limit-1)
	}
	if err != nil {
		return write(s, append([]byte{answerError}, truncate(err.Error())...))
	}
	l.shows(shownReason)
	return l.writeAnswer(s, resp)
}

const (
	// answerBlock is how much of a long answer is written at once.
	answerBlock = 16 << 10
	// slowestAnswer is how many bytes a second a long answer has to be taken at, after the time that each has.
	slowestAnswer = 512
)

// writeAnswer is write of an answer that went well. A long one is not copied for the byte before it, and may take
// longer than Limits.RequestTimeout over a slow link, as long as half of the places for requests are free: whoever
// takes its answers slowly keeps no other's request out.
func (l *link) writeAnswer(s network.Stream, resp []byte) error {
	if len(resp) < 2*answerBlock {
		return write(s, append([]byte{answerOK}, resp...))
	}
	began, m := time.Now(), l.mesh
	if _, err := s.Write(append(appendLength(nil, len(resp)+1), answerOK)); err != nil {
		return err
	}
	for at := 0; at < len(resp); {
		took := time.Since(began)
		if took > m.limits.RequestTimeout && 2*len(m.requests) > cap(m.requests) {
			m.counters.refuse(ReasonTooMany)
			return errors.New("the answer is taken too slowly, and others ask")
		}
		n := min(answerBlock, len(resp)-at)
		left := min(m.limits.RequestTimeout+time.Duration(at)*time.Second/slowestAnswer-took, m.limits.RequestTimeout)
		if err := s.SetWriteDeadline(time.Now().Add(left)); err != nil {
			return err
		}
		if _, err := s.Write(resp[at : at+n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

func (l *link) readRequest(s network.Stream) ([]byte, error) {
	limits := l.mesh.limits
	patience, most := limits.RequestTimeout, limits.Frame
	if !l.admitted() {
		patience, most = limits.HelloTimeout, limits.Hello
	}
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	req, err := readFrame(bufio.NewReader(s), most)
	if err == nil && req[0] != answerOK {
		err = fmt.Errorf("%w request", errMalformed)
	}
	if errors.Is(err, errMalformed) {
		l.violation(ReasonMalformed)
	}
	if err != nil {
		return nil, err
	}
	return req[1:], nil
}

package mesh

import (
	"fmt"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// What nodes say to each other on the local network is multicast DNS (RFC 6762, and RFC 6763 for services): a
// question for the instances of the mesh's service; as an answer the name of one, with its text beside.

const (
	// maxPacket is the largest packet of multicast DNS, with its headers.
	maxPacket = 9000
	// maxQuestions and maxRecords are how many of a packet are looked at: we send one question, and one text.
	maxQuestions = 16
	maxRecords   = 32
	// recordSeconds is how long others may remember an answer.
	recordSeconds = 120
)

// questionPacket asks for the nodes of a service.
func questionPacket(service string) ([]byte, error) {
	name, err := dnsmessage.NewName(service)
	if err != nil {
		return nil, fmt.Errorf("mesh: %q cannot be asked for on the local network: %w", service, err)
	}
	m := dnsmessage.Message{
		Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}},
	}
	return m.Pack()
}

// answerPacket answers that an instance of a service is here. Each line of the text may have 255 bytes.
func answerPacket(service, instance string, text []string) ([]byte, error) {
	of, err := dnsmessage.NewName(service)
	if err != nil {
		return nil, fmt.Errorf("mesh: %q cannot be announced on the local network: %w", service, err)
	}
	name, err := dnsmessage.NewName(instance + "." + service)
	if err != nil {
		return nil, fmt.Errorf("mesh: %q cannot be announced on the local network: %w", instance, err)
	}
	header := func(n dnsmessage.Name) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: n, Class: dnsmessage.ClassINET, TTL: recordSeconds}
	}
	m := dnsmessage.Message{
		Header:      dnsmessage.Header{Response: true, Authoritative: true},
		Answers:     []dnsmessage.Resource{{Header: header(of), Body: &dnsmessage.PTRResource{PTR: name}}},
		Additionals: []dnsmessage.Resource{{Header: header(name), Body: &dnsmessage.TXTResource{TXT: text}}},
	}
	return m.Pack()
}

// heard is what a packet says of a service.
type heard struct {
	asked bool       // somebody asks for its instances
	texts [][]string // of instances that are said to be there
}

// readPacket reads what some node, or anybody, sent. Of what is beyond the limits, or malformed, nothing counts.
func readPacket(b []byte, service string) heard {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	if err != nil {
		return heard{}
	}
	if !h.Response {
		return heard{asked: asksFor(&p, service)}
	}
	if p.SkipAllQuestions() != nil || p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return heard{}
	}
	return heard{texts: textsOf(&p, service)}
}

// asksFor reports whether one of the first questions is for the instances of a service.
func asksFor(p *dnsmessage.Parser, service string) bool {
	for range maxQuestions {
		q, err := p.Question()
		if err != nil {
			return false
		}
		if (q.Type == dnsmessage.TypePTR || q.Type == dnsmessage.TypeALL) &&
			strings.EqualFold(q.Name.String(), service) {
			return true
		}
	}
	return false
}

// textsOf are the texts of instances of a service, among the first records.
func textsOf(p *dnsmessage.Parser, service string) (texts [][]string) {
	for range maxRecords {
		h, err := p.AdditionalHeader()
		if err != nil {
			return texts
		}
		_, of, _ := strings.Cut(h.Name.String(), ".")
		if h.Type != dnsmessage.TypeTXT || !strings.EqualFold(of, service) {
			if p.SkipAdditional() != nil {
				return texts
			}
			continue
		}
		r, err := p.TXTResource()
		if err != nil {
			return texts
		}
		texts = append(texts, r.TXT)
	}
	return texts
}

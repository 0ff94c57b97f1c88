package log

// Vector is a vector clock: it says, for each strand of a log, up to which number somebody knows its
// facts; 0: none. It never changes: what is made from it shares what did not
// change with it. A vector of thousands of strands costs each fact only the part
// in which it differs from those that it was made from.
//
//	root ──▶ [8] ──▶ [8] ──▶ numbers of 8 strands
type Vector struct {
	root   *span
	levels int // of spans: it holds 8^levels strands
}

// spanBits is how many bits of a strand's place one level tells.
const spanBits = 3

// span is a part of a vector: the numbers of strands or, above them, their spans.
type span struct {
	parts   *[1 << spanBits]*span // nil at the lowest level
	numbers [1 << spanBits]uint32
}

// At is the number up to which strand k is known.
func (c Vector) At(k int) uint64 {
	if k>>(spanBits*c.levels) > 0 {
		return 0
	}
	s := c.root
	for level := c.levels - 1; level > 0 && s != nil; level-- {
		s = s.parts[k>>(spanBits*level)&(1<<spanBits-1)]
	}
	if s == nil {
		return 0
	}
	return uint64(s.numbers[k&(1<<spanBits-1)])
}

// With is the vector with number n for strand k.
func (c Vector) With(k int, n uint64) Vector {
	for k>>(spanBits*c.levels) > 0 || c.levels == 0 {
		c = c.grown()
	}
	c.root = c.root.with(c.levels, k, n)
	return c
}

func (s *span) with(levels, k int, n uint64) *span {
	out := &span{}
	if s != nil {
		*out = *s
	}
	if levels == 1 {
		out.numbers[k&(1<<spanBits-1)] = uint32(n)
		return out
	}
	parts := [1 << spanBits]*span{}
	if out.parts != nil {
		parts = *out.parts
	}
	i := k >> (spanBits * (levels - 1)) & (1<<spanBits - 1)
	parts[i] = parts[i].with(levels-1, k, n)
	out.parts = &parts
	return out
}

// set is with for a vector that nobody else has, which it changes.
func (c *Vector) set(k int, n uint64) {
	for k>>(spanBits*c.levels) > 0 || c.levels == 0 {
		*c = c.grown()
	}
	at := &c.root
	for level := c.levels - 1; ; level-- {
		if *at == nil {
			*at = &span{}
		}
		if level == 0 {
			(*at).numbers[k&(1<<spanBits-1)] = uint32(n)
			return
		}
		if (*at).parts == nil {
			(*at).parts = &[1 << spanBits]*span{}
		}
		at = &(*at).parts[k>>(spanBits*level)&(1<<spanBits-1)]
	}
}

// grown is the vector with one more level.
func (c Vector) grown() Vector {
	if c.levels == 0 || c.root == nil {
		return Vector{levels: c.levels + 1}
	}
	return Vector{root: &span{parts: &[1 << spanBits]*span{c.root}}, levels: c.levels + 1}
}

// alike are two clocks with equally many levels.
func alike(a, b Vector) (Vector, Vector) {
	for a.levels < b.levels {
		a = a.grown()
	}
	for b.levels < a.levels {
		b = b.grown()
	}
	return a, b
}

// Join is what both know together. It looks only at what differs, and counts the
// steps.
func (c Vector) Join(o Vector, steps *int) Vector {
	c, o = alike(c, o)
	c.root = c.root.join(o.root, steps)
	return c
}

func (s *span) join(o *span, steps *int) *span {
	*steps++
	switch {
	case s == o || o == nil:
		return s
	case s == nil:
		return o
	}
	if s.parts == nil {
		return s.joinNumbers(o)
	}
	return s.joinParts(o, steps)
}

// joinNumbers is the one or the other where that says all, which makes nothing new.
func (s *span) joinNumbers(o *span) *span {
	first, second := true, true
	for i, n := range s.numbers {
		first, second = first && n >= o.numbers[i], second && n <= o.numbers[i]
	}
	switch {
	case second: // also if they are equal: then they have it together from now on
		return o
	case first:
		return s
	}
	out := *s
	for i, n := range o.numbers {
		out.numbers[i] = max(out.numbers[i], n)
	}
	return &out
}

func (s *span) joinParts(o *span, steps *int) *span {
	var parts [1 << spanBits]*span
	first, second := true, true
	for i, p := range s.parts {
		if parts[i] = p; p != o.parts[i] {
			parts[i] = p.join(o.parts[i], steps)
		}
		first, second = first && parts[i] == p, second && parts[i] == o.parts[i]
	}
	switch {
	case second:
		return o
	case first:
		return s
	}
	kept := parts // parts itself stays where it costs nothing
	return &span{parts: &kept}
}

// Beyond calls fn for each strand of which c knows more than o. It looks only at
// what differs.
func (c Vector) Beyond(o Vector, fn func(k int, n uint64)) {
	c, o = alike(c, o)
	c.root.beyond(o.root, 0, fn)
}

func (s *span) beyond(o *span, k int, fn func(k int, n uint64)) {
	if s == o || s == nil {
		return
	}
	if o == nil {
		o = &span{}
	}
	for i := range 1 << spanBits {
		at := k<<spanBits | i
		switch {
		case s.parts == nil && s.numbers[i] > o.numbers[i]:
			fn(at, uint64(s.numbers[i]))
		case s.parts != nil && o.parts != nil:
			s.parts[i].beyond(o.parts[i], at, fn)
		case s.parts != nil:
			s.parts[i].beyond(nil, at, fn)
		}
	}
}

// Covers reports whether c knows all that o does.
func (c Vector) Covers(o Vector) bool {
	all := true
	o.Beyond(c, func(int, uint64) { all = false })
	return all
}

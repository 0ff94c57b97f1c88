package diagram

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// A browser shows a drawing as an image, into which nothing looks that checks a page. So it is read here as a browser
// does: each text in it stands out from what lies below it, at least 4.5 to 1, in light and in dark.
func TestTextsStandOut(t *testing.T) {
	opt := Options{
		States: map[workflow.TaskName]workflow.State{}, Known: map[workflow.TaskName]string{"a": "as known 12 min ago"},
	}
	src := "workflow: test\ntasks:\n"
	var bars []Bar
	began := time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC)
	for i, state := range slices.Sorted(maps.Keys(stateColor)) {
		name := string(rune('a' + i))
		src += "  " + name + ": {type: manual, timeout: 1h"
		if i > 0 {
			src += []string{`, after: a`, `, when: failed("a"), time-to-wait: 1h`}[i%2]
		}
		src += "}\n"
		opt.States[workflow.TaskName(name)] = state
		bars = append(bars,
			Bar{Name: name, Who: "ana", State: state, Begin: began, End: began.Add(time.Hour), Others: []time.Time{began}},
			Bar{Name: name + " soon", State: state})
	}
	drawings := map[string][]byte{"gantt": Gantt(Chart{Title: "test", From: began, To: began.Add(time.Hour), Bars: bars})}
	for name, opt := range map[string]Options{
		"plan": {}, "instance": opt, "tall plan": {Tall: true}, "tall": {States: opt.States, Known: opt.Known, Tall: true},
	} {
		b, err := Render(parse(t, src), "svg", opt)
		if err != nil {
			t.Fatal(err)
		}
		drawings[name] = b
	}
	for name, b := range drawings {
		for _, dark := range []bool{false, true} {
			texts := 0
			for _, x := range read(t, b, dark) {
				if x.ratio < 4.5 {
					t.Errorf("%s, dark %v: %q is %s on %s, %.1f to 1", name, dark, x.text, x.ink, x.ground, x.ratio)
				}
				texts++
			}
			if texts < len(stateColor) {
				t.Errorf("%s: only %d texts are found", name, texts)
			}
		}
	}
}

// seen is a text of a drawing as it is seen.
type seen struct {
	text, ink, ground string
	ratio             float64
}

// shape is a rectangle with a fill.
type shape struct {
	x, y, w, h float64
	fill       string
}

// element is one that is open, with its classes.
type element struct {
	name    string
	classes []string
}

// read are the texts of a drawing.
func read(t *testing.T, svg []byte, dark bool) (out []seen) {
	t.Helper()
	var open []element
	var shapes []shape
	var rules []rule
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := tok.(type) {
		case xml.StartElement:
			at := map[string]string{}
			for _, a := range x.Attr {
				at[a.Name.Local] = a.Value
			}
			open = append(open, element{x.Name.Local, strings.Fields(at["class"])})
			if x.Name.Local == "rect" {
				s := shape{number(at["x"]), number(at["y"]), number(at["width"]), number(at["height"]),
					cmp.Or(fillOf(rules, open), at["fill"])}
				if s.fill != "none" {
					shapes = append(shapes, s)
				}
			}
			if x.Name.Local == "text" {
				text, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				chars, _ := text.(xml.CharData)
				s := seen{text: string(chars), ink: fillOf(rules, open)}
				for _, r := range shapes { // the last is on top
					if px, py := number(at["x"]), number(at["y"])-3; px >= r.x && px <= r.x+r.w && py >= r.y && py <= r.y+r.h {
						s.ground = r.fill
					}
				}
				if s.text != "" && s.ink != "none" { // else it is the halo of another
					s.ratio = contrast(t, s.ink, s.ground)
					out = append(out, s)
				}
				if _, ended := text.(xml.EndElement); ended {
					open = open[:len(open)-1]
				}
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 && open[len(open)-1].name == "style" {
				rules = rulesOf(string(x), dark)
			}
		}
	}
}

func number(s string) float64 {
	x, _ := strconv.ParseFloat(s, 64) // left out: 0
	return x
}

// rule is a fill of what a selector is about.
type rule struct {
	selector []string // the last is the element's, those before are around it
	fill     string
}

var (
	darkOnly = regexp.MustCompile(`(?s)@media \(prefers-color-scheme:dark\)\{((?:[^{}]*\{[^{}]*\})*)\s*\}`)
	ruleText = regexp.MustCompile(`([^{}]+)\{([^{}]*)\}`)
	fillText = regexp.MustCompile(`(?:^|;)fill:([^;]+)`)
)

// rulesOf are the rules of a style sheet that have fills, in their order.
func rulesOf(css string, dark bool) (out []rule) {
	css = darkOnly.ReplaceAllString(css, map[bool]string{true: "$1", false: ""}[dark])
	for _, m := range ruleText.FindAllStringSubmatch(css, -1) {
		fill := fillText.FindStringSubmatch(m[2])
		if fill == nil {
			continue
		}
		for one := range strings.SplitSeq(m[1], ",") {
			out = append(out, rule{strings.Fields(one), fill[1]})
		}
	}
	return out
}

// fillOf is the fill of the innermost of the elements that are open.
func fillOf(rules []rule, open []element) (fill string) {
	most := -1
	for _, r := range rules {
		weight, fits := 0, fitsOne(r.selector[len(r.selector)-1], open[len(open)-1])
		for _, around := range r.selector[:len(r.selector)-1] {
			fits = fits && slices.ContainsFunc(open[:len(open)-1], func(e element) bool { return fitsOne(around, e) })
		}
		for _, s := range r.selector {
			weight += 10 * strings.Count(s, ".")
			if !strings.HasPrefix(s, ".") {
				weight++
			}
		}
		if fits && weight >= most { // the later of two that weigh the same
			fill, most = r.fill, weight
		}
	}
	return fill
}

// fitsOne reports whether a selector without blanks is about an element.
func fitsOne(selector string, e element) bool {
	parts := strings.Split(selector, ".")
	return (parts[0] == "" || parts[0] == e.name) &&
		!slices.ContainsFunc(parts[1:], func(class string) bool { return !slices.Contains(e.classes, class) })
}

// contrast is how a colour stands out from another, by the rule of WCAG 2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light := func(c string) float64 {
		if len(c) == 4 {
			c = "#" + strings.Repeat(c[1:2], 2) + strings.Repeat(c[2:3], 2) + strings.Repeat(c[3:4], 2)
		}
		var rgb [3]uint8
		if _, err := fmt.Sscanf(c, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
			t.Fatalf("the colour %q: %v", c, err)
		}
		sum := 0.0
		for i, share := range []float64{0.2126, 0.7152, 0.0722} {
			v := float64(rgb[i]) / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += share * v
		}
		return sum
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

package study

import (
	"fmt"
	"math"
	"strings"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// Claim is what the source says of its first scenario besides the tables, held
// against what was found.
type Claim struct {
	Key   string `json:"key"` // tells it from the others, for whoever words it in another language
	Claim string `json:"claim"`
	Holds bool   `json:"holds"`
	Found string `json:"found"` // what says whether it holds
}

// claims are those of the scenario five, under the published eight.
func claims(r *Report) []Claim {
	return []Claim{
		orderClaim("time", &r.Time, [][]aptitude.Mechanism{
			{aptitude.Pull}, {aptitude.Receptive}, {aptitude.Typical, aptitude.SelPush10},
			{aptitude.SelPush, aptitude.SelPushFlowtime}, {aptitude.Selective}, {aptitude.Push},
		}),
		orderClaim("quality", &r.Quality, [][]aptitude.Mechanism{
			{aptitude.Push}, {aptitude.SelPush}, {aptitude.SelPush10, aptitude.Selective},
			{aptitude.SelPushFlowtime}, {aptitude.Typical}, {aptitude.Receptive}, {aptitude.Pull},
		}),
		headline(r),
		meanClaim("time", &r.Time, lessIsBetter),
		meanClaim("quality", &r.Quality, moreIsBetter),
		lowVariation(r),
	}
}

// orderClaim: each group is better than those after it, and equal within itself.
func orderClaim(measure string, m *Measure, groups [][]aptitude.Mechanism) Claim {
	var words, against []string
	check := func(row, column aptitude.Mechanism, want Sign) {
		if got := m.Test[row][column]; got != want {
			against = append(against, fmt.Sprintf("%s %s %s", row, got, column))
		}
	}
	for i, group := range groups {
		var names []string
		for j, row := range group {
			names = append(names, string(row))
			for _, column := range group[:j] {
				check(column, row, Equal)
			}
			for _, worse := range groups[i+1:] {
				for _, column := range worse {
					check(row, column, Better)
				}
			}
		}
		words = append(words, strings.Join(names, " = "))
	}
	c := Claim{
		Key:   "order-" + measure,
		Claim: fmt.Sprintf("order of %s, best first: %s", measure, strings.Join(words, ", ")), Holds: len(against) == 0,
	}
	c.Found = "so are all pairs"
	if !c.Holds {
		c.Found = strings.Join(against, ", ")
	}
	return c
}

// headline: what Sel-push gains on average. The source does not say over which
// mechanisms it averaged; both readings are given, and either may hold.
func headline(r *Report) Claim {
	c := Claim{
		Key:   "headline",
		Claim: "Sel-push needs 13 % less time than the older mechanisms on average, and has 8 % more quality",
	}
	var found []string
	for _, of := range []struct {
		what string
		ms   []aptitude.Mechanism
	}{{"the five", older}, {"Typical, Receptive and Selective", older[2:]}} {
		time := 1 - r.Time.Means[aptitude.SelPush].Mean/r.Time.average(of.ms)
		quality := r.Quality.Means[aptitude.SelPush].Mean/r.Quality.average(of.ms) - 1
		c.Holds = c.Holds || math.Round(100*time) == 13 && math.Round(100*quality) == 8
		found = append(found, fmt.Sprintf("%s time and %s quality than %s", percent(-time), percent(quality), of.what))
	}
	c.Found = strings.Join(found, "; ")
	return c
}

// percent says by how much more or less something is.
func percent(more float64) string {
	if more < 0 {
		return fmt.Sprintf("%.1f %% less", -100*more)
	}
	return fmt.Sprintf("%.1f %% more", 100*more)
}

// average is the plain mean of the means.
func (m *Measure) average(ms []aptitude.Mechanism) float64 {
	sum := 0.0
	for _, mech := range ms {
		sum += m.Means[mech].Mean
	}
	return sum / float64(len(ms))
}

// meanClaim: all three of the family are better than the mean of the older five.
func meanClaim(measure string, m *Measure, side float64) Claim {
	mean := m.average(older)
	c := Claim{
		Key: "mean-" + measure,
		Claim: fmt.Sprintf("all three of the Sel-push family have a better %s than the mean of the older five",
			measure), Holds: true,
	}
	found := []string{"the mean is " + number(mean)}
	for _, mech := range family {
		x := m.Means[mech].Mean
		c.Holds = c.Holds && side*(x-mean) > 0
		found = append(found, fmt.Sprintf("%s %s", mech, number(x)))
	}
	c.Found = strings.Join(found, ", ")
	return c
}

// lowVariation: where tasks and resources vary least, Sel-push-10 has less
// quality than Selective.
func lowVariation(r *Report) Claim {
	c := Claim{
		Key:   "low-variation",
		Claim: "where tasks and resources vary least (0.2, 0.2), Sel-push-10 has less quality than Selective",
		Holds: true,
	}
	var found []string
	for i := range r.ByCondition {
		at := &r.ByCondition[i]
		if at.TaskVariability != 0.2 || at.ResourceVariability != 0.2 {
			continue
		}
		q := &at.Quality
		sign := q.Test[aptitude.SelPush10][aptitude.Selective]
		c.Holds = c.Holds && sign == Worse
		found = append(found, fmt.Sprintf("load %v: %s against %s (%s)", at.Load,
			number(q.Means[aptitude.SelPush10].Mean), number(q.Means[aptitude.Selective].Mean), sign))
	}
	c.Found = strings.Join(found, "; ")
	return c
}

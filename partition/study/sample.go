package study

import (
	"encoding/json"
	"math"
)

// Level is the confidence level of intervals and tests.
const Level = 0.95

// Summary describes a sample.
type Summary struct {
	N    int
	Mean float64
	// Margin is half the width of the 95 % confidence interval of the mean; 0
	// when one observation says nothing about it.
	Margin float64
}

// Low is the lower end of the 95 % confidence interval of the mean.
func (s Summary) Low() float64 { return s.Mean - s.Margin }

// High is the upper end of the 95 % confidence interval of the mean.
func (s Summary) High() float64 { return s.Mean + s.Margin }

// MarshalJSON writes {"mean": …, "ci95": [low, high]}.
func (s Summary) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Mean float64    `json:"mean"`
		CI95 [2]float64 `json:"ci95"`
	}{s.Mean, [2]float64{s.Low(), s.High()}})
}

// summarize describes the sample xs, which must not be empty.
func summarize(xs []float64) Summary {
	n := float64(len(xs))
	mean, sd := moments(xs)
	s := Summary{N: len(xs), Mean: mean}
	if len(xs) > 1 {
		s.Margin = studentQuantile((1+Level)/2, n-1) * sd / math.Sqrt(n)
	}
	return s
}

// moments are the mean and the standard deviation (with n − 1) of a sample.
func moments(xs []float64) (mean, sd float64) {
	n := float64(len(xs))
	for _, x := range xs {
		mean += x
	}
	mean /= n
	if len(xs) < 2 {
		return mean, 0
	}
	squares := 0.0
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(squares / (n - 1))
}

// Sign says how one mechanism compares to another.
type Sign string

// The signs of the tables.
const (
	Better Sign = "+" // significantly better
	Worse  Sign = "-" // significantly worse
	Equal  Sign = "=" // no significant difference
)

// Sides of a measure: what is better, more or less of it?
const (
	moreIsBetter = 1.0
	lessIsBetter = -1.0
)

// compare is the paired t-test at Level of a against b, whose observations
// belong together one by one.
func compare(a, b []float64, side float64) Sign {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = side * (a[i] - b[i])
	}
	mean, sd := moments(d)
	if len(d) < 2 || mean == 0 {
		return Equal
	}
	n := float64(len(d))
	t := math.Abs(mean) / (sd / math.Sqrt(n)) // +Inf when all pairs differ alike
	switch {
	case 2*(1-studentCDF(t, n-1)) >= 1-Level:
		return Equal
	case mean > 0:
		return Better
	}
	return Worse
}

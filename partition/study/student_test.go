package study

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Quantiles of Student's t at 97.5 %, as any table of it has them.
func TestStudentQuantile(t *testing.T) {
	for _, test := range []struct{ df, want float64 }{
		{1, 12.7062}, {2, 4.3027}, {3, 3.1824}, {5, 2.5706}, {10, 2.2281}, {19, 2.0930},
		{30, 2.0423}, {120, 1.9799}, {539, 1.9644}, {1e6, 1.9600},
	} {
		if got := studentQuantile(0.975, test.df); math.Abs(got-test.want) > 5e-5 {
			t.Errorf("%v degrees of freedom: %.5f, want %.4f", test.df, got, test.want)
		}
	}
}

// With one and two degrees of freedom the distribution has a closed form.
func TestStudentCDFAgainstClosedForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-50, 50).Draw(t, "t")
		cauchy := 0.5 + math.Atan(x)/math.Pi
		two := 0.5 + x/(2*math.Sqrt(2+x*x))
		if got := studentCDF(x, 1); math.Abs(got-cauchy) > 1e-12 {
			t.Errorf("CDF(%v, 1) = %v, want %v", x, got, cauchy)
		}
		if got := studentCDF(x, 2); math.Abs(got-two) > 1e-12 {
			t.Errorf("CDF(%v, 2) = %v, want %v", x, got, two)
		}
	})
}

func TestStudentCDFIsSymmetricAndRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, df := rapid.Float64Range(0, 20).Draw(t, "t"), rapid.Float64Range(1, 1000).Draw(t, "df")
		if sum := studentCDF(x, df) + studentCDF(-x, df); math.Abs(sum-1) > 1e-12 {
			t.Errorf("both sides sum to %v", sum)
		}
		if studentCDF(x+0.1, df) < studentCDF(x, df) {
			t.Errorf("the CDF falls after %v", x)
		}
	})
}

func TestIncompleteBeta(t *testing.T) {
	for _, test := range []struct{ x, a, b, want float64 }{
		{0, 2, 3, 0}, {1, 2, 3, 1}, {0.3, 1, 1, 0.3}, {0.5, 7, 7, 0.5},
		{0.4, 2, 3, 0.5248}, // 1 − 0.6⁴ − 4 · 0.4 · 0.6³
		{0.2, 1, 5, 1 - 0.32768},
	} {
		if got := incompleteBeta(test.x, test.a, test.b); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("I_%v(%v, %v) = %v, want %v", test.x, test.a, test.b, got, test.want)
		}
	}
}

func TestSummary(t *testing.T) {
	s := summarize([]float64{2, 4, 4, 6})
	// sd = √(8/3), margin = 3.18245 × sd / 2
	if s.Mean != 4 || math.Abs(s.Margin-2.59846) > 1e-4 {
		t.Errorf("got %+v", s)
	}
	if s := summarize([]float64{7}); s.Mean != 7 || s.Margin != 0 {
		t.Errorf("one observation: %+v", s)
	}
}

func TestCompareInPairs(t *testing.T) {
	base := []float64{10, 200, 3000, 40}
	shifted := func(by ...float64) []float64 {
		xs := make([]float64, len(base))
		for i := range xs {
			xs[i] = base[i] + by[i%len(by)]
		}
		return xs
	}
	tests := []struct {
		name string
		a    []float64
		side float64
		want Sign
	}{
		{"the same", base, moreIsBetter, Equal},
		{"always a little more", shifted(1, 1.1), moreIsBetter, Better},
		{"always a little more, less being better", shifted(1, 1.1), lessIsBetter, Worse},
		{"always exactly one more", shifted(1), moreIsBetter, Better},
		{"now more, now less", shifted(1, -1), moreIsBetter, Equal},
		{"more on the whole, but not surely", shifted(3, -1), moreIsBetter, Equal},
	}
	for _, test := range tests {
		if got := compare(test.a, base, test.side); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	if got := compare([]float64{1}, []float64{2}, moreIsBetter); got != Equal {
		t.Errorf("one pair says nothing: %q", got)
	}
}

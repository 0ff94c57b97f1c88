package study

import "math"

// studentCDF is the probability that a value of Student's t distribution with
// df degrees of freedom does not exceed t.
func studentCDF(t, df float64) float64 {
	if t < 0 {
		return 1 - studentCDF(-t, df)
	}
	switch {
	case math.IsInf(t, 1):
		return 1
	case t*t < df: // near the middle: what lies between 0 and t
		return 0.5 + incompleteBeta(t*t/(df+t*t), 0.5, df/2)/2
	}
	return 1 - incompleteBeta(df/(df+t*t), df/2, 0.5)/2
}

// studentQuantile is the value that Student's t with df degrees of freedom does
// not exceed with probability p, for p in [0.5, 1). It bisects: there are few
// quantiles in a study, and the CDF never falls.
func studentQuantile(p, df float64) float64 {
	lo, hi := 0.0, 1.0
	for studentCDF(hi, df) < p {
		lo, hi = hi, 2*hi
	}
	for range 100 {
		mid := lo + (hi-lo)/2
		if studentCDF(mid, df) < p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// incompleteBeta is the regularised incomplete beta function I_x(a, b).
func incompleteBeta(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // the fraction converges fast below its mean
		return 1 - incompleteBeta(1-x, b, a)
	}
	return math.Exp(a*math.Log(x)+b*math.Log1p(-x)-logBeta(a, b)) / (a * betaFraction(x, a, b))
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

// betaFraction evaluates 1 + d₁/(1 + d₂/(1 + …)), the continued fraction of the
// incomplete beta function (DLMF 8.17.22), from the front by Lentz's method:
// the value is the product of the ratios of successive numerators and
// denominators, which never need to be known themselves.
func betaFraction(x, a, b float64) float64 {
	const (
		tiny      = 1e-300 // stands in for a zero denominator
		precision = 1e-15
		most      = 10_000
	)
	value, numerator, denominator := 1.0, 1.0, 0.0
	for n := 1; n <= most; n++ {
		d := betaCoefficient(n, x, a, b)
		denominator = 1 / nonzero(1+d*denominator, tiny)
		numerator = nonzero(1+d/numerator, tiny)
		ratio := numerator * denominator
		value *= ratio
		if math.Abs(ratio-1) < precision {
			break
		}
	}
	return value
}

// betaCoefficient is d_n of DLMF 8.17.23.
func betaCoefficient(n int, x, a, b float64) float64 {
	m := float64(n / 2)
	if n%2 == 0 {
		return m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
	}
	return -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
}

func nonzero(x, instead float64) float64 {
	if x == 0 {
		return instead
	}
	return x
}

package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strings"
	"time"
)

var (
	errOverflow = errors.New("the result is too great")
	errZero     = errors.New("division by zero")
)

// arithmetic are the operators on two values that are not null. Whole numbers
// have 64 bits on every machine and never wrap around; what is not a finite
// number is an error, since JSON has no word for it.
var arithmetic = map[string]func(a, b any) (any, error){
	"+": add, "-": subtract, "*": multiply, "/": divide, "%": remainder,
}

func add(a, b any) (any, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return concatenate(x, y)
		}
	case time.Time:
		if y, ok := b.(time.Duration); ok {
			return x.Add(y), nil
		}
	case time.Duration:
		if y, ok := b.(time.Time); ok {
			return y.Add(x), nil
		}
	}
	return calculate("+", a, b, addInt, func(x, y float64) float64 { return x + y })
}

func subtract(a, b any) (any, error) {
	if x, ok := a.(time.Time); ok {
		switch y := b.(type) {
		case time.Time:
			return x.Sub(y), nil
		case time.Duration:
			return x.Add(-y), nil
		}
	}
	return calculate("-", a, b, func(x, y int64) (int64, bool) {
		d := x - y
		return d, (x >= y) == (d >= 0)
	}, func(x, y float64) float64 { return x - y })
}

func addInt(x, y int64) (int64, bool) {
	sum := x + y
	return sum, (y >= 0) == (sum >= x)
}

func multiply(a, b any) (any, error) {
	return calculate("*", a, b, multiplyInt, func(x, y float64) float64 { return x * y })
}

func multiplyInt(x, y int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	if (x < 0) != (y < 0) {
		return -int64(low), high == 0 && low <= 1<<63
	}
	return int64(low), high == 0 && low < 1<<63
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// divide always gives a number: 1 / 2 is 0.5.
func divide(a, b any) (any, error) {
	x, ok1 := float(a)
	y, ok2 := float(b)
	switch {
	case !ok1 || !ok2:
		return nil, misfit("/", a, b)
	case y == 0:
		return nil, errZero
	}
	return finite(x / y)
}

func remainder(a, b any) (any, error) {
	x, ok1 := a.(int64)
	y, ok2 := b.(int64)
	switch {
	case !ok1 || !ok2:
		return nil, misfit("%", a, b)
	case y == 0:
		return nil, errZero
	case y == -1:
		return int64(0), nil
	}
	return x % y, nil
}

// calculate applies an operator to two whole numbers, two durations, or two
// numbers of which one is not whole.
func calculate(
	op string, a, b any, whole func(x, y int64) (int64, bool), broken func(x, y float64) float64,
) (any, error) {
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			n, fits := whole(x, y)
			if !fits {
				return nil, errOverflow
			}
			return n, nil
		}
	case time.Duration:
		y, ok := b.(time.Duration)
		if !ok || op == "*" {
			return nil, misfit(op, a, b)
		}
		n, fits := whole(int64(x), int64(y))
		if !fits {
			return nil, errOverflow
		}
		return time.Duration(n), nil
	}
	x, ok1 := float(a)
	y, ok2 := float(b)
	if !ok1 || !ok2 {
		return nil, misfit(op, a, b)
	}
	return finite(broken(x, y))
}

func misfit(op string, a, b any) error {
	return fmt.Errorf("%s does not fit %s and %s", op, typeOf(a).a(), typeOf(b).a())
}

func finite(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errOverflow
	}
	return f, nil
}

func concatenate(x, y string) (any, error) {
	if len(x)+len(y) > MaxValue {
		return nil, fmt.Errorf("the text would have %d bytes: at most %d are allowed", len(x)+len(y), MaxValue)
	}
	return x + y, nil
}

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// compare orders two values of one type.
func compare(a, b any) (int, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), nil
		}
	case time.Time:
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), nil
		}
	case time.Duration:
		if y, ok := b.(time.Duration); ok {
			return cmp.Compare(x, y), nil
		}
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y), nil
		}
	}
	x, ok1 := float(a)
	y, ok2 := float(b)
	if !ok1 || !ok2 {
		return 0, fmt.Errorf("%s cannot be compared with %s", typeOf(a).a(), typeOf(b).a())
	}
	return cmp.Compare(x, y), nil
}

// equal compares values of any types; 1 and 1.0 are equal, also inside lists
// and maps.
func equal(a, b any) bool {
	if i, err := compare(a, b); err == nil {
		return i == 0
	}
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, found := y[k]; !found || !equal(v, w) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

package wire

import "context"

// came is the key of what WithCame gives to a context.
type came struct{}

// WithCame has a request's carrier say how many bytes of the answer came, each time some come. Such a request has no
// time limit but that of its context: whoever makes it knows whether it goes on.
func WithCame(ctx context.Context, each func(bytes int)) context.Context {
	return context.WithValue(ctx, came{}, each)
}

// Came is what WithCame gave to a context; nil: nothing.
func Came(ctx context.Context) func(bytes int) {
	each, _ := ctx.Value(came{}).(func(int))
	return each
}

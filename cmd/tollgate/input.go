package main

import (
	"context"
	"io"
)

// input returns standard input for a command that reads it as a file. When the command is interrupted, reading ends with the
// error of its context: a signal by itself ends no read of a terminal or a pipe.
func (p process) input(ctx context.Context) io.Reader {
	return &interruptible{ctx: ctx, from: p.stdin}
}

// interruptible is a reader that a context ends. Nothing is taken from below before the first Read: until then it is there for
// the questions of a dialogue, and for whatever else is given the same input.
type interruptible struct {
	ctx  context.Context // of the command, whose lifetime the reader has
	from io.Reader
	out  *io.PipeReader // nil before the first Read
}

func (r *interruptible) Read(b []byte) (int, error) {
	if r.out == nil {
		out, in := io.Pipe()
		r.out = out
		context.AfterFunc(r.ctx, func() { _ = in.CloseWithError(r.ctx.Err()) }) // it never fails
		go func() {
			_, err := io.Copy(in, r.from)
			_ = in.CloseWithError(err) // likewise
		}()
	}
	return r.out.Read(b)
}

package cli

import (
	"context"
	"io"
)

// OpenStdin returns standard input for a command that reads it as a file. After an interrupt, reads
// return the error of the context; a signal alone does not end a read of a terminal or a pipe.
func (p Process) OpenStdin(ctx context.Context) io.Reader {
	return &interruptible{ctx: ctx, from: p.Stdin}
}

// interruptible is a reader whose reads end with a context. It reads nothing from its source before
// the first Read; until then the source is available to prompts and other readers.
type interruptible struct {
	ctx  context.Context // of the command, which the reader does not outlive
	from io.Reader
	out  *io.PipeReader // nil before the first Read
}

func (r *interruptible) Read(b []byte) (int, error) {
	if r.out == nil {
		out, in := io.Pipe()
		r.out = out
		context.AfterFunc(r.ctx, func() { _ = in.CloseWithError(r.ctx.Err()) }) // never fails
		go func() {
			_, err := io.Copy(in, r.from)
			_ = in.CloseWithError(err) // never fails
		}()
	}
	return r.out.Read(b)
}

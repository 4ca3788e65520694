package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Prompter asks the person at the terminal for input. Prompts go to standard error, because
// standard output is for the results of the command.
type Prompter struct {
	out    io.Writer
	in     *os.File       // nil if standard input is not a terminal
	screen *term.Terminal // shared by all prompts, because it buffers input that was typed ahead
}

// NewPrompter returns a prompter that reads from standard input.
func NewPrompter(p Process) *Prompter {
	d := &Prompter{out: p.Stderr}
	if f, ok := p.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		d.in = f
		d.screen = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{f, p.Stderr}, "")
	}
	return d
}

// IsInteractive reports whether standard input is a terminal, so that a person can answer prompts.
func (d *Prompter) IsInteractive() bool { return d.in != nil }

// Disable ends prompting, after standard input was read as a file.
func (d *Prompter) Disable() { d.in = nil }

// PrintNote prints a line for the person, which is not part of the command's result.
func (d *Prompter) PrintNote(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format+"\n", args...) // the command continues without it
}

// ReadLine prompts for a line. The prompter must be interactive.
func (d *Prompter) ReadLine(ctx context.Context, prompt string) (string, error) {
	line, err := d.readInterruptibly(ctx, func() (string, error) {
		d.screen.SetPrompt(prompt)
		return d.screen.ReadLine()
	})
	return strings.TrimSpace(line), err
}

// ReadSecret prompts for a line without echo. The prompter must be interactive.
func (d *Prompter) ReadSecret(ctx context.Context, prompt string) (string, error) {
	return d.readInterruptibly(ctx, func() (string, error) { return d.screen.ReadPassword(prompt) })
}

// ErrInterrupted is the error of a command that a signal ended.
var ErrInterrupted = errors.New("interrupted")

// readInterruptibly calls read and returns its result, or errInterrupted once the context ends: a
// signal does not end a read from a terminal. It switches the echo off before the prompt appears,
// so that an early keystroke of a secret is not shown.
func (d *Prompter) readInterruptibly(ctx context.Context, read func() (string, error)) (string, error) {
	fd := int(d.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("read from the terminal: %w", err)
	}
	defer func() { _ = term.Restore(fd, before) }() // nothing can be done if it fails
	type answer struct {
		text string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		text, err := read()
		answered <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", d.endPrompt()
	case a := <-answered:
		switch {
		case errors.Is(a.err, io.EOF): // Ctrl-C and Ctrl-D, which send no signals in raw mode
			return "", d.endPrompt()
		case a.err != nil:
			return "", fmt.Errorf("read from the terminal: %w", a.err)
		}
		return a.text, nil
	}
}

// endPrompt ends the line of an unanswered prompt and returns errInterrupted.
func (d *Prompter) endPrompt() error {
	_, _ = fmt.Fprint(d.out, "\r\n") // only layout
	return ErrInterrupted
}

// maxPasswordInput is the maximum number of bytes that are read as a password. The rules allow 128
// characters of at most four bytes.
const maxPasswordInput = 1024

// ReadPassword reads a password from standard input, or prompts for it twice on the terminal.
func ReadPassword(ctx context.Context, p Process, fromStdin bool) (string, error) {
	if fromStdin {
		return ReadPasswordLine(ctx, p)
	}
	d := NewPrompter(p)
	if !d.IsInteractive() {
		return "", errors.New(
			"standard input is not a terminal, so the password cannot be entered: use --password-stdin")
	}
	first, err := d.ReadSecret(ctx, "Password: ")
	if err != nil {
		return "", err
	}
	second, err := d.ReadSecret(ctx, "Repeat the password: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", errors.New("the two passwords differ")
	}
	return first, nil
}

// ReadPasswordLine reads a password from the first line of standard input.
func ReadPasswordLine(ctx context.Context, p Process) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(p.OpenStdin(ctx), maxPasswordInput+1)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read password: %w", err)
	}
	if len(line) > maxPasswordInput {
		return "", errors.New("the password is too long")
	}
	return strings.TrimRight(line, "\r\n"), nil
}

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

package cli

import (
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

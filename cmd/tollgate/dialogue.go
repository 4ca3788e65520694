package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// dialogue asks the person at the terminal. Prompts go to standard error, so that standard output stays what the
// command prints.
type dialogue struct {
	out    io.Writer
	in     *os.File       // nil where nobody can be asked
	screen *term.Terminal // one for all questions: it keeps what was typed ahead
}

func newDialogue(p process) *dialogue {
	d := &dialogue{out: p.stderr}
	if f, ok := p.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		d.in = f
		d.screen = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{f, p.stderr}, "")
	}
	return d
}

// interactive reports whether there is somebody to ask.
func (d *dialogue) interactive() bool { return d.in != nil }

// say tells the person something that is not what the command prints.
func (d *dialogue) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format+"\n", args...) // advice
}

// line asks for a line. There must be somebody to ask.
func (d *dialogue) line(ctx context.Context, prompt string) (string, error) {
	line, err := d.ask(ctx, func() (string, error) {
		d.screen.SetPrompt(prompt)
		return d.screen.ReadLine()
	})
	return strings.TrimSpace(line), err
}

// secret asks for a line that is not shown while it is typed. There must be somebody to ask.
func (d *dialogue) secret(ctx context.Context, prompt string) (string, error) {
	return d.ask(ctx, func() (string, error) { return d.screen.ReadPassword(prompt) })
}

var errInterrupted = errors.New("interrupted")

// ask waits for an answer, or until the command is interrupted: a signal does not end reading from a terminal. The
// terminal stops showing what is typed before the prompt is there, so that nothing typed at once is shown.
func (d *dialogue) ask(ctx context.Context, read func() (string, error)) (string, error) {
	fd := int(d.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", fmt.Errorf("read from the terminal: %w", err)
	}
	defer func() { _ = term.Restore(fd, before) }() // as it was is all that can be tried
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
		return "", d.interrupted()
	case a := <-answered:
		switch {
		case errors.Is(a.err, io.EOF): // Ctrl-C and Ctrl-D, which are no signals meanwhile
			return "", d.interrupted()
		case a.err != nil:
			return "", fmt.Errorf("read from the terminal: %w", a.err)
		}
		return a.text, nil
	}
}

// interrupted ends the line of a prompt that was not answered.
func (d *dialogue) interrupted() error {
	_, _ = fmt.Fprint(d.out, "\r\n") // likewise
	return errInterrupted
}

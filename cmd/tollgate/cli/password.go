package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

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

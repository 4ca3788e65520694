// Package cli is what all commands share: streams, exit codes, tables and JSON, prompts, progress,
// flags, completion and the explanation of wrong use. It knows no command.
package cli

import (
	"errors"
	"io"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// Process contains the arguments, environment and streams of one run of the program.
type Process struct {
	Args    []string
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Build is what the service says about the program.
	Build registryapi.Build
	// Exit ends the process at once. Only main sets it.
	Exit func(code int)
}

// The exit codes of all commands.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitLimit  = 2 // "ratelimit simulate" found more than its limit, or "tools record --diff" a difference
	// a publisher's command needs a sign-in, a step-up or a code, and there is no terminal to
	// prompt for it
	ExitSignIn = 3
	ExitUsage  = 2 // a command that calls a service was used wrongly
	ExitAway   = 4 // a command that calls a service could not reach it, or the service failed
)

// CodedError is an error that decides the exit code.
type CodedError struct {
	Code int
	Err  error
}

// Error implements error.
func (e *CodedError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the code.
func (e *CodedError) Unwrap() error { return e.Err }

// ErrorSentence returns the text of an error for the operator, in one line: the message of a fault,
// with its cause if a dependency failed. Errors of rate limit rules have one line each.
func ErrorSentence(err error) string {
	text := err.Error()
	var faults ruleset.Faults
	if errors.As(err, &faults) {
		return text
	}
	if f, ok := fault.As(err); ok && f.Kind != fault.Internal && f.Kind != fault.Unavailable {
		text = f.Message
	}
	// join Cobra's suggestion to the sentence
	text = strings.Replace(text, "\n\nDid you mean this?\n", ", did you mean ", 1)
	return strings.Join(strings.Fields(text), " ")
}

// Getenv returns the value of an environment variable; empty if it is not set.
func (p Process) Getenv(name string) string {
	value := ""
	for _, entry := range p.Environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v // the last one wins, as in os/exec
		}
	}
	return value
}

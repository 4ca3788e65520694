package program

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

var update = flag.Bool("update", false, "write docs/commands.md and docs/settings.md")

// TestReferences checks that the reference pages in docs match the program.
func TestReferences(t *testing.T) {
	for file, want := range map[string]string{
		"../../../docs/commands.md":      commandReference(),
		"../../../docs/settings.md":      settingReference(t),
		"../../../docs/risk-policy.yaml": settings.RiskPolicy(),
	} {
		if *update {
			must.Succeed(t, os.WriteFile(file, []byte(want), 0o600))
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s does not match the program (%v): run 'make generate' and commit the file", file, err)
		}
	}
}

const commandsHead = `# Commands

<!-- Made from the program by make generate. -->
<!-- docs: run elsewhere, on prepared data: TestCommandExamples in test/acceptance/operator -->

This page contains the output of ^tollgate help^ for every command. Settings of the service come from the environment
([settings.md](settings.md)); operator commands read the same variables, and work on the same database while the service runs.

- **Exit codes.** 0: done. 1: failed, interrupted, or used wrongly; one sentence on standard error, which begins with ^tollgate:^, gives the reason.
  Errors in rate limit rules have one line each. 3: a publisher's command needs a sign-in, a step-up or a code, and there is no terminal to prompt for it.
- **Output.** Tables are for people; control characters in them are replaced. ^--output json^ is for programs: its names are stable.
  Results go to standard output, errors to standard error.
- **Shell completion.** ^source <(tollgate completion bash)^, or zsh, fish, powershell; see [tollgate completion](#tollgate-completion). Values of
  flags are completed too, if a flag has only a few.
- **Secrets** are read from the terminal or from standard input, never from an argument.

`

// withBackquotes replaces ^ by a backquote, which a raw string literal cannot contain.
func withBackquotes(text string) string { return strings.ReplaceAll(text, "^", "`") }

func commandReference() string {
	var b strings.Builder
	b.WriteString(withBackquotes(commandsHead))
	cli.VisitCommands(newRoot(cli.Process{}), func(c *cobra.Command) { writeCommand(&b, c) })
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "%s %s\n\n%s.\n\n", strings.Repeat("#", 2+min(commandDepth(c), 1)), c.CommandPath(),
		strings.TrimRight(c.Short, "."))
	if c.HasSubCommands() {
		for _, sub := range c.Commands() {
			path := sub.CommandPath()
			fmt.Fprintf(b, "- [%s](#%s): %s\n", path, strings.ReplaceAll(path, " ", "-"),
				strings.TrimRight(sub.Short, "."))
		}
		b.WriteString("\n")
	}
	if isGroup(c) {
		return
	}
	fmt.Fprintf(b, "```text\n%s\n", c.UseLine())
	if c.Long != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(c.Long))
	}
	if flags := c.NonInheritedFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\n%s", flags)
	}
	fmt.Fprintf(b, "```\n\n```sh\n%s\n```\n\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
}

// isGroup reports whether a command only has subcommands, whose sections contain all there is to
// know.
func isGroup(c *cobra.Command) bool {
	return c.HasSubCommands() && c.Long == ""
}

func commandDepth(c *cobra.Command) int {
	if !c.HasParent() {
		return 0
	}
	return 1 + commandDepth(c.Parent())
}

const settingsHead = `# Settings

<!-- Made from the program by make generate. -->

This page lists all settings of the service. The service reads them from the environment once, at start. If a value is malformed or out of range,
the service does not start and prints a sentence that names the variable; an empty value counts as not set. ^tollgate settings^ prints each variable
with its current value, with secrets masked.

- A **secret** can also be read from a file: set ^NAME_FILE^ to the path of a file that contains the value of ^NAME^.
- Write durations as ^500ms^, ^10s^, ^24h^; separate the items of lists by commas.
- Every command also reads the names of the Envoy rate limit service. For ^tollgate ratelimit^, ^HOST^ and ^PORT^ are those of its HTTP listener.

`

func settingReference(t *testing.T) string {
	t.Helper()
	vars, err := settings.Describe(nil)
	must.Succeed(t, err)
	var b bytes.Buffer
	b.WriteString(withBackquotes(settingsHead))
	for _, v := range vars {
		if v.Part == "" {
			t.Errorf("%s belongs to no part: give its group a part in wiring/settings", v.Name)
		}
	}
	for _, part := range settings.Sections() {
		fmt.Fprintf(&b, "## %s\n\n| variable | default | form | meaning |\n|---|---|---|---|\n", part)
		for _, v := range vars {
			if v.Part != part {
				continue
			}
			form := v.Form
			if v.Secret {
				form += "; secret"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.Name, formatCode(v.Default), form, escapeCell(v.Meaning))
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func formatCode(s string) string {
	if s == "" {
		return ""
	}
	return "`" + escapeCell(s) + "`"
}

// escapeCell escapes the separator of table cells.
func escapeCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

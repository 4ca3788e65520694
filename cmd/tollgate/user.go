package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/wiring"
)

// maxPasswordInput is the maximum number of bytes that are read as a password. The rules allow 128
// characters of at most four bytes.
const maxPasswordInput = 1024

func newUser(p process) *cobra.Command {
	c := &cobra.Command{Use: "user", Short: "Manage the people who may sign in"}
	c.AddCommand(newUserAdd(p), newUserList(p), newUserShow(p), newUserSetPassword(p), newUserSetPhone(p), newUserEnrolMFA(p))
	for _, change := range accountChanges() {
		c.AddCommand(newUserChange(p, change))
	}
	return c
}

func newUserAdd(p process) *cobra.Command {
	var person people.Person
	var email string
	var fromStdin bool
	c := &cobra.Command{
		Use:   "add --email E --name N",
		Short: "Add a person",
		Long: "Add a person who may sign in. If there is no database, the command creates it,\n" +
			"so you can add the first person before the first start of the service.",
		Example: "  tollgate user add --email ada@example.com --name Ada\n" +
			"  printf '%s' \"$PASSWORD\" | tollgate user add --email ada@example.com --name Ada --password-stdin",
		Args: cobra.NoArgs,
	}
	o := addOutput(c)
	c.Flags().StringVar(&email, "email", "", "e-mail address that the person signs in with")
	c.Flags().StringVar(&person.Name, "name", "", "the person's name")
	c.Flags().StringVar(&person.Phone, "phone", "", "telephone number for SMS codes, for example +441632960961")
	c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	requireFlags(c, "email", "name")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var err error
		if person.Email, err = auth.ParseEmail(email); err != nil {
			return err
		}
		password, err := readPassword(c.Context(), p, fromStdin)
		if err != nil {
			return err
		}
		if person.Password, err = auth.NewPassword("password", password); err != nil {
			return err
		}
		return withCreatedOperator(c, p, func(op *wiring.Operator) error {
			a, err := op.People.Add(c.Context(), person)
			if err != nil {
				return err
			}
			return o.printResult(p.stdout, table{
				header: []string{"ID", "EMAIL", "NAME"},
				rows:   [][]string{{string(a.ID), string(a.Email), a.Name}},
				value:  map[string]string{"id": string(a.ID), "email": string(a.Email), "name": a.Name},
			})
		})
	}
	return c
}

// readPassword reads a password from standard input, or prompts for it twice on the terminal.
func readPassword(ctx context.Context, p process, fromStdin bool) (string, error) {
	if fromStdin {
		return readPasswordLine(ctx, p)
	}
	d := newPrompter(p)
	if !d.isInteractive() {
		return "", errors.New("standard input is not a terminal, so the password cannot be entered: use --password-stdin")
	}
	first, err := d.readSecret(ctx, "Password: ")
	if err != nil {
		return "", err
	}
	second, err := d.readSecret(ctx, "Repeat the password: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", errors.New("the two passwords differ")
	}
	return first, nil
}

// readPasswordLine reads a password from the first line of standard input.
func readPasswordLine(ctx context.Context, p process) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(p.openStdin(ctx), maxPasswordInput+1)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read password: %w", err)
	}
	if len(line) > maxPasswordInput {
		return "", errors.New("the password is too long")
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// requireFlags marks flags as required.
func requireFlags(c *cobra.Command, names ...string) {
	for _, name := range names {
		_ = c.MarkFlagRequired(name) // fails only for an unknown flag
	}
}

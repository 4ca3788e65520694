package person

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// The values of --step-up.
const (
	stepUpEmail = "email"
	stepUpSMS   = "sms"
	stepUpApp   = "app"
	stepUpNone  = "none"
)

// stepUpMethods returns the step-up methods by their values of --step-up.
func stepUpMethods() map[string]auth.StepUpMethod {
	return map[string]auth.StepUpMethod{
		stepUpEmail: auth.EmailOTP, stepUpSMS: auth.SMSOTP, stepUpApp: auth.AuthenticatorApp,
	}
}

func checkStepUp(word string) error {
	if _, ok := stepUpMethods()[word]; ok || word == stepUpNone {
		return nil
	}
	words := append(slices.Sorted(maps.Keys(stepUpMethods())), stepUpNone)
	return fmt.Errorf("--step-up: %q is not one of %s", word, strings.Join(words, ", "))
}

// promptMethod prompts for the method of a step-up.
func (u *publisherRun) promptMethod(ctx context.Context) (string, error) {
	for {
		word, err := u.ReadLine(ctx, "Step up by email, sms, app or none [email]: ")
		if err != nil {
			return "", err
		}
		if word = strings.ToLower(word); word == "" {
			word = stepUpEmail
		}
		if checkStepUp(word) == nil {
			return word, nil
		}
	}
}

// stepUp starts a step-up and prompts for its code. It returns the new trust level of the session.
func (u *publisherRun) stepUp(ctx context.Context, who *account.Account, method string) (string, error) {
	challenge, err := who.BeginStepUp(ctx, string(stepUpMethods()[method]))
	if err != nil {
		return "", err
	}
	prompt := "Code by " + method + " (leave empty for a new code): "
	if method == stepUpApp {
		prompt = "Code from the authenticator: "
	}
	for tries := challenge.AttemptsRemaining; ; {
		code, err := u.ReadLine(ctx, prompt)
		if err != nil {
			return "", err
		}
		if code == "" {
			if err := u.resendCode(ctx, who, method, challenge.ID); err != nil {
				return "", err
			}
			continue
		}
		level, err := who.FinishStepUp(ctx, code)
		if tries--; tries <= 0 || !tollgateclient.HasCode(err, auth.CodeInvalidOTP) {
			return level, err
		}
		u.PrintNote("%s", cli.ErrorSentence(err))
	}
}

// resendCode requests a new code, unless the method is the authenticator app.
func (u *publisherRun) resendCode(ctx context.Context, who *account.Account, method, challenge string) error {
	if method == stepUpApp {
		return nil
	}
	return who.Client().ResendStepUp(ctx, challenge)
}

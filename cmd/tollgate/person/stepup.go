package person

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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

	stepUpCompany = "company"
)

// stepUpMethods returns the step-up methods by their values of --step-up.
func stepUpMethods() map[string]auth.StepUpMethod {
	return map[string]auth.StepUpMethod{
		stepUpEmail: auth.EmailOTP, stepUpSMS: auth.SMSOTP, stepUpApp: auth.AuthenticatorApp,
		stepUpCompany: auth.CompanySignIn,
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
		word, err := u.ReadLine(ctx, "Step up by email, sms, app, company or none [email]: ")
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
	if method == stepUpCompany {
		return u.awaitCompany(ctx, who, challenge)
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

// pollEvery is the time between two checks whether a step-up at a company has succeeded.
const pollEvery = 2 * time.Second

// awaitCompany prints the address of a step-up at a company, and waits until the session is raised or
// the step-up expires.
func (u *publisherRun) awaitCompany(
	ctx context.Context, who *account.Account, c tollgateclient.Challenge,
) (string, error) {
	u.PrintNote("Open this address in a browser, and sign in at your company:\n%s", c.URL)
	expires, err := time.Parse(time.RFC3339, c.ExpiresAt)
	if err != nil {
		return "", fmt.Errorf("the step-up of the service has another form: %w", err)
	}
	ctx, cancel := context.WithDeadline(ctx, expires)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		var s tollgateclient.Session
		err := who.Do(ctx, func(ctx context.Context, token string) (err error) {
			s, err = who.Client().GetSession(ctx, token)
			return err
		})
		if err != nil || s.TrustLevel == auth.FullTrust.String() {
			return s.TrustLevel, err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return "", ctx.Err()
			}
			return "", &account.SignInNeeded{Reason: "the step-up at your company was not completed in time"}
		case <-ticker.C:
		}
	}
}

// resendCode requests a new code, unless the method is the authenticator app.
func (u *publisherRun) resendCode(ctx context.Context, who *account.Account, method, challenge string) error {
	if method == stepUpApp {
		return nil
	}
	return who.Client().ResendStepUp(ctx, challenge)
}

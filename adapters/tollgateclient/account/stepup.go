package account

import (
	"context"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/credentialfile"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// BeginStepUp starts a step-up and stores its challenge, so that a later command can send the code.
func (a *Account) BeginStepUp(ctx context.Context, method string) (tollgateclient.Challenge, error) {
	var c tollgateclient.Challenge
	err := a.Do(ctx, func(ctx context.Context, token string) (err error) {
		c, err = a.client.BeginStepUp(ctx, token, method)
		return err
	})
	if err != nil {
		return c, err
	}
	return c, a.keepChallenge(ctx, &credentialfile.Challenge{ID: c.ID, Method: c.Method})
}

func (a *Account) keepChallenge(ctx context.Context, challenge *credentialfile.Challenge) error {
	return a.file.Update(ctx, func(c *credentialfile.Contents) {
		if a.storedTokens(*c) != nil {
			c.SignIn.Challenge = challenge
		}
	})
}

// FinishStepUp completes the stored step-up with its code and stores the new device token. It
// returns the new trust level of the session. After a wrong code the step-up is still waiting.
func (a *Account) FinishStepUp(ctx context.Context, code string) (string, error) {
	contents, err := a.file.Read()
	if err != nil {
		return "", err
	}
	if a.storedTokens(contents) == nil || contents.SignIn.Challenge == nil {
		return "", fault.New(fault.Invalid,
			"no step-up is waiting for a code: start one with 'tollgate login --step-up email'")
	}
	raised, err := a.client.VerifyStepUp(ctx, contents.SignIn.Challenge.ID, code)
	if err != nil {
		return "", err
	}
	return raised.TrustLevel, a.file.Update(ctx, func(c *credentialfile.Contents) {
		if a.storedTokens(*c) != nil {
			c.SignIn.Challenge = nil
		}
		a.keepDevice(c, raised.DeviceToken)
	})
}

// TrustMachine marks this machine as trusted, for later logins.
func (a *Account) TrustMachine(ctx context.Context) error {
	return a.Do(ctx, func(ctx context.Context, token string) error {
		s, err := a.client.GetSession(ctx, token)
		if err != nil {
			return err
		}
		return a.client.TrustDevice(ctx, token, s.DeviceIdentity)
	})
}

// SignOut ends the session at the service and deletes its tokens from the file, even if the call to
// the service fails. The machine keeps its name and device token. The error is a SignInNeeded if
// there is no session.
func (a *Account) SignOut(ctx context.Context) error {
	err := a.Do(ctx, a.endSession)
	updateErr := a.file.Update(context.WithoutCancel(ctx), func(c *credentialfile.Contents) {
		if a.storedTokens(*c) != nil {
			c.SignIn.Tokens, c.SignIn.Challenge = nil, nil
		}
	})
	if updateErr != nil {
		return updateErr
	}
	return err
}

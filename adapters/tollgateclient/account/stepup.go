package account

import (
	"context"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/credentialfile"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// BeginStepUp begins a step-up and keeps it, so that a later command may bring the code.
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

// FinishStepUp brings the code of the step-up that waits, and keeps the proof that the machine is given for it. It
// returns the new trust level of the session. A code that is wrong leaves the step-up waiting.
func (a *Account) FinishStepUp(ctx context.Context, code string) (string, error) {
	contents, err := a.file.Read()
	if err != nil {
		return "", err
	}
	if a.storedTokens(contents) == nil || contents.SignIn.Challenge == nil {
		return "", fault.New(fault.Invalid, "", "no step-up waits for a code: begin one with --step-up")
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

// Trust marks this machine as one that the person trusts, for logins to come.
func (a *Account) TrustMachine(ctx context.Context) error {
	return a.Do(ctx, func(ctx context.Context, token string) error {
		s, err := a.client.GetSession(ctx, token)
		if err != nil {
			return err
		}
		return a.client.TrustDevice(ctx, token, s.DeviceIdentity)
	})
}

// SignOut ends the session at the service and forgets its tokens here, the second also where the first fails. The
// machine keeps its name and proof. The error is a SignInNeeded where nobody is signed in.
func (a *Account) SignOut(ctx context.Context) error {
	err := a.Do(ctx, a.endSession)
	forgetting := a.file.Update(context.WithoutCancel(ctx), func(c *credentialfile.Contents) {
		if a.storedTokens(*c) != nil {
			c.SignIn.Tokens, c.SignIn.Challenge = nil, nil
		}
	})
	if forgetting != nil {
		return forgetting
	}
	return err
}

package devices

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// maxTokens is how many tokens of a device are good (contract A-37).
const maxTokens = 5

// Confirmation is what confirming a device works on.
type Confirmation struct {
	Devices authstore.Devices
	Tokens  authstore.DeviceTokens
	Entropy secrets.Entropy
}

// Confirm marks a device as confirmed, whose session passed step-up or MFA, and returns a new token
// by which it proves itself (contract ). It joins the transaction that the context
// carries.
func Confirm(ctx context.Context, on Confirmation, id auth.DeviceID, now time.Time) (auth.DeviceSecret, error) {
	err := on.Devices.Update(ctx, id, func(d *auth.Device) error {
		d.Confirmed = true
		return nil
	})
	if err != nil {
		return "", err
	}
	secret := secrets.NewSecret[auth.DeviceSecret](on.Entropy)
	err = on.Tokens.Add(ctx, auth.DeviceToken{Hash: auth.HashSecret(secret), DeviceID: id, IssuedAt: now}, maxTokens)
	if err != nil {
		return "", err
	}
	return secret, nil
}

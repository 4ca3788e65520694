package devices

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// maxTokens is the number of valid tokens of a device (contract A-37). Older ones are removed.
const maxTokens = 5

// Confirmation holds the dependencies of Confirm.
type Confirmation struct {
	Devices authstore.Devices
	Tokens  authstore.DeviceTokens
	Entropy secrets.Entropy
}

// Confirm marks a device as confirmed, after its session has passed step-up or MFA, and returns a
// new device token (contract ). From then on a mark TRUSTED counts, anyone who has set it
// (contract A-38). It joins the transaction of the context.
func Confirm(ctx context.Context, on Confirmation, id auth.DeviceID, now time.Time) (auth.DeviceSecret, error) {
	err := on.Devices.Update(ctx, id, func(d *auth.Device) error {
		d.Confirmed, d.MarkUnproven = true, false
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

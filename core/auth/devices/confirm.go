package devices

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
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
	Trail   *auditing.Trail
}

// Confirm marks the device of a session as confirmed, after the session has passed step-up or MFA,
// and returns a new device token (contract ). If trust is set, it also marks the device
// as TRUSTED. From then on such a mark counts, anyone who has set it (contract A-38). It joins the
// transaction of the context.
func Confirm(
	ctx context.Context, on Confirmation, session *auth.Session, trust bool, now time.Time,
) (auth.DeviceSecret, error) {
	var device auth.Device
	var before auth.TrustStatus
	err := on.Devices.Update(ctx, session.DeviceID, func(d *auth.Device) error {
		before, d.Confirmed, d.MarkUnproven = d.TrustStatus, true, false
		if trust {
			d.TrustStatus = auth.DeviceTrusted
		}
		device = *d
		return nil
	})
	if err != nil {
		return "", err
	}
	secret := secrets.NewSecret[auth.DeviceSecret](on.Entropy)
	err = on.Tokens.Add(ctx,
		auth.DeviceToken{Hash: auth.HashSecret(secret), DeviceID: device.ID, IssuedAt: now}, maxTokens)
	if err != nil || device.TrustStatus == before {
		return secret, err
	}
	return secret, on.Trail.RecordChanges(ctx, newChange(changeActor{session.UserID, session.ID}, &device, "trust",
		audit.Details{detailPreviousStatus: audit.Text(before)}))
}

package pluginhost

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/ports/courier"
)

// DevelopmentCourier is the plugin that writes codes to the log, for development.
const DevelopmentCourier = "otp-log"

// CourierConfig names the plugins that deliver messages. An empty name is a channel without a
// plugin.
type CourierConfig struct {
	Email, SMS string
	// Development means that DevelopmentCourier, if it exists, serves the channels without a
	// plugin.
	Development bool
}

// Couriers are couriers by channel. A nil courier is a channel that is not offered.
type Couriers struct {
	Email courier.Courier
	SMS   courier.Courier
}

// Couriers starts the plugins of the configuration and returns their couriers. Its error begins
// with the setting whose plugin does not exist, or with the setting of a plugin that is wrong. It logs a warning if codes go to the log, or if no
// channel has a courier although one for development is allowed.
func (h *Host) Couriers(c CourierConfig, log *logrus.Entry) (Couriers, error) {
	var found Couriers
	if err := h.setCourier(&found.Email, c.Email); err != nil {
		return Couriers{}, fmt.Errorf("OTP_EMAIL_PLUGIN: %w", err)
	}
	if err := h.setCourier(&found.SMS, c.SMS); err != nil {
		return Couriers{}, fmt.Errorf("OTP_SMS_PLUGIN: %w", err)
	}
	if err := h.checkSettings(c, log); err != nil {
		return Couriers{}, err
	}
	if c.Development && (found.Email == nil || found.SMS == nil) {
		h.addDevelopmentCourier(&found, log)
	}
	return found, nil
}

// checkSettings returns an error if a setting of a plugin of the configuration is wrong. It logs a
// warning for the settings of a courier that is not among them.
func (h *Host) checkSettings(c CourierConfig, log *logrus.Entry) error {
	for _, v := range h.plugins {
		if v.spec.name == c.Email || v.spec.name == c.SMS {
			if err := v.settingsError(context.Background()); err != nil {
				return err
			}
		} else if value, _ := v.cfg.variable(v.spec.document(), true); value != "" && v.spec.kind == pluginclient.Courier {
			log.Warnf("%s is set and not used: no channel has the plugin %s", v.spec.document(), v.spec.name)
		}
	}
	return nil
}

// setCourier sets a courier to the plugin of a name. It is a no-op if the name is empty.
func (h *Host) setCourier(to *courier.Courier, plugin string) error {
	if plugin == "" {
		return nil
	}
	named, err := h.Courier(plugin)
	if err != nil {
		return err
	}
	*to = named
	return nil
}

// addDevelopmentCourier sets the channels without a courier to DevelopmentCourier. If that does not
// exist, it logs a warning, but only if no channel has a courier: the name of one shows that the
// other channel is not wanted.
func (h *Host) addDevelopmentCourier(c *Couriers, log *logrus.Entry) {
	development, err := h.Courier(DevelopmentCourier)
	switch {
	case err != nil && c.Email == nil && c.SMS == nil:
		log.WithError(err).Warn("one-time codes cannot be delivered")
		return
	case err != nil:
		return
	}
	log.Warn("one-time codes are written to the log, because no plugin is set for them: for development only")
	if c.Email == nil {
		c.Email = development
	}
	if c.SMS == nil {
		c.SMS = development
	}
}

package settings

import (
	"fmt"
	"time"
)

// Limits holds the API's own limits (contract A-52).
type Limits struct {
	Auth         uint64        `env:"AUTH_RATE_LIMIT" envDefault:"100" desc:"requests below /auth, but GET /auth/session, in a window, by address (see CLIENT_IPV6_PREFIX); 0 = no limit"`
	API          uint64        `env:"API_RATE_LIMIT" envDefault:"1000" desc:"requests for GET /auth/session, devices, sessions and audit log in a window, by address; 0 = no limit"`
	Registry     uint64        `env:"REGISTRY_RATE_LIMIT" envDefault:"10000" desc:"requests of registry and methods in a window, by address; 0 = no limit"`
	Window       time.Duration `env:"RATE_LIMIT_WINDOW" envDefault:"15m" desc:"the window of these limits"`
	StepUp       uint64        `env:"STEP_UP_LIMIT" envDefault:"5" desc:"step-up challenges and resends in a window, by user; 0 = no limit"`
	Notices      uint64        `env:"NOTICE_LIMIT" envDefault:"5" desc:"notices of one kind to a person in an hour; 0 = no limit"`
	StepUpWindow time.Duration `env:"STEP_UP_WINDOW" envDefault:"1h" desc:"the window of STEP_UP_LIMIT"`
}

// Validate names the first setting that is out of range.
func (l Limits) Validate() error {
	if !wholeSeconds(l.Window) {
		return fmt.Errorf("RATE_LIMIT_WINDOW: %v is not one or more whole seconds", l.Window)
	}
	if !wholeSeconds(l.StepUpWindow) {
		return fmt.Errorf("STEP_UP_WINDOW: %v is not one or more whole seconds", l.StepUpWindow)
	}
	return nil
}

func wholeSeconds(d time.Duration) bool { return d >= time.Second && d%time.Second == 0 }

package wiring

import (
	"github.com/tollgate-dev/tollgate/adapters/iplists"
	"github.com/tollgate-dev/tollgate/adapters/maxmind"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// NewReplayer returns what assesses recorded sign-ins with the weights, bounds and sources of the settings. It opens no records.
func NewReplayer(s settings.Settings, stepUp replay.Assumption) (*replay.Replayer, error) {
	geography, err := maxmind.Open(s.Places)
	if err != nil {
		return nil, err
	}
	reputation, err := iplists.Open(s.IPLists)
	if err != nil {
		return nil, err
	}
	return replay.New(replay.Config{Assess: s.Auth.SignIn().Assess(), StepUp: stepUp}, geography, reputation), nil
}

package adminapi

import (
	"context"
	"net/http"
)

type overviewResponse struct {
	Status       string            `json:"status"` // of /ready: ok, degraded or unavailable
	Dependencies map[string]string `json:"dependencies"`
	Plugins      []pluginResponse  `json:"plugins"`
	Mirrors      int               `json:"mirrors"`
	Webhooks     int               `json:"webhooks"`
	Pending      int               `json:"pendingEvents"`
	Dead         int               `json:"deadEvents"`
	Warnings     []warning         `json:"warnings"`
}

type pluginResponse struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Version   string `json:"version"`
	State     string `json:"state"`
	Restarts  int    `json:"restarts"`
	LastError string `json:"lastError,omitempty"`
}

// warning is something that fails.
type warning struct {
	Kind    string `json:"kind"` // mirror_failing or events_dead
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

func (a *API) getOverview(*request) act {
	return func(ctx context.Context) (answer, error) {
		o, err := a.use.Overview.Read(ctx)
		if err != nil {
			return answer{}, err
		}
		response := overviewResponse{
			Status: o.Status, Dependencies: o.Dependencies, Plugins: []pluginResponse{}, Mirrors: o.Mirrors,
			Webhooks: o.Webhooks, Pending: o.Pending, Dead: o.Dead, Warnings: []warning{},
		}
		for _, p := range o.Plugins {
			response.Plugins = append(response.Plugins, pluginResponse{
				p.Name, p.Kind, p.Version, p.State, p.Restarts, p.LastError,
			})
		}
		for _, m := range o.Failing {
			response.Warnings = append(response.Warnings, warning{"mirror_failing", string(m.Name), m.State.Reason})
		}
		if o.Dead > 0 {
			response.Warnings = append(response.Warnings, warning{"events_dead", "", "events could not be delivered"})
		}
		return answer{status: http.StatusOK, body: response}, nil
	}
}

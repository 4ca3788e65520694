package adminapi

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
)

const mirrorPath = root + "/mirrors/:name"

func (a *API) mountMirrors(r fiber.Router) {
	read, write := a.operator(adminRead), a.operator(adminWrite)
	of := func(action audit.Action) change { return change{audit.RegistryChange, action, "mirror"} }
	r.Post(mirrorPath+"/sync", a.write(of("mirror_sync"), write, a.syncMirror))
	r.Get(mirrorPath+"/diff", a.read(read, a.diffMirror))
}

func (a *API) syncMirror(q *request) act {
	name, mirrors := mirror.Name(q.param("name")), newKindRoutes(a.use.Kinds[mirror.Kind.List])
	return func(ctx context.Context) (answer, error) {
		if err := a.use.Mirrors.Schedule(ctx, name); err != nil {
			return answer{}, err
		}
		m, err := mirrors.Get(ctx, string(name))
		if err != nil {
			return answer{}, err
		}
		return object(http.StatusAccepted, mirrors.newResponse(&m)), nil
	}
}

// maxOutcomes is how many changes an answer shows of those that a read of a mirror would make.
const maxOutcomes = 1000

type diffResponse struct {
	Records  int            `json:"records"`
	Servers  int            `json:"servers"`
	Counts   map[string]int `json:"counts"`
	Outcomes []outcome      `json:"outcomes"` // at most maxOutcomes
}

type outcome struct {
	Verdict string `json:"verdict"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func (a *API) diffMirror(q *request) act {
	name := mirror.Name(q.param("name"))
	return func(ctx context.Context) (answer, error) {
		response := diffResponse{Counts: map[string]int{}, Outcomes: []outcome{}}
		found, err := a.use.Mirrors.Diff(ctx, name, mirroring.Options{Report: func(o mirroring.Outcome) {
			if len(response.Outcomes) < maxOutcomes {
				response.Outcomes = append(response.Outcomes, outcome{string(o.Verdict), o.Name, o.Version, o.Reason})
			}
		}})
		if err != nil {
			return answer{}, err
		}
		response.Records, response.Servers = found.Records, found.Servers
		for verdict, n := range found.Count {
			response.Counts[string(verdict)] = n
		}
		return answer{status: http.StatusOK, body: response}, nil
	}
}

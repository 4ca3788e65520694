package adminapi

import (
	"context"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
)

const (
	mirrorsPath = root + "/mirrors"
	mirrorPath  = mirrorsPath + "/:name"
)

func (a *API) mountMirrors(r fiber.Router) {
	read, write := a.operator(adminRead), a.operator(adminWrite)
	of := func(action audit.Action) change { return change{audit.RegistryChange, action, "mirror"} }
	r.Get(mirrorsPath, a.read(read, a.listMirrors))
	r.Get(mirrorPath, a.read(read, a.getMirror))
	r.Put(mirrorPath, a.write(of("mirror_change"), write, a.putMirror))
	r.Delete(mirrorPath, a.write(of("mirror_remove"), write, a.removeMirror))
	r.Post(mirrorPath+"/sync", a.write(of("mirror_sync"), write, a.syncMirror))
	r.Get(mirrorPath+"/diff", a.read(read, a.diffMirror))
}

type mirrorResponse struct {
	Name      string       `json:"name"`
	URL       string       `json:"url"` // without the token of a view
	Include   []string     `json:"include"`
	Exclude   []string     `json:"exclude"`
	Interval  string       `json:"interval"`
	Review    string       `json:"review"`
	Lenient   bool         `json:"lenient"`
	CreatedAt string       `json:"createdAt"`
	State     *mirrorState `json:"state,omitempty"`
	managed
}

type mirrorState struct {
	Health       string  `json:"health"` // waiting, ok or failing
	NextAt       *string `json:"nextAt"`
	LastSuccess  *string `json:"lastSuccess"`
	FailingSince *string `json:"failingSince"`
	Reason       string  `json:"reason,omitempty"` // of the last failure
	Servers      int     `json:"servers"`

	Refused mirror.Refusals `json:"refused,omitempty"` // by the last comparison of everything
}

// stable returns the mirror without its state.
func (m mirrorResponse) stable() any {
	m.State = nil
	return m
}

func newMirrorResponse(m *mirror.Mirror) mirrorResponse {
	return mirrorResponse{
		string(m.Name), m.URL.Public(), registry.PatternTexts(m.Selection.Include),
		registry.PatternTexts(m.Selection.Exclude), m.Interval.String(), string(m.Review), m.Lenient,
		jsonstring.FormatTime(m.CreatedAt), &mirrorState{
			string(m.State.Health()), jsonstring.TimeOrNull(m.State.NextAt), jsonstring.TimeOrNull(m.State.LastSuccess),
			jsonstring.TimeOrNull(m.State.FailingSince), m.State.Reason, m.State.Servers, m.State.Refused,
		}, managed{m.ManagedBy},
	}
}

func (a *API) listMirrors(q *request) act {
	key := func(m *mirror.Mirror) string { return string(m.Name) }
	return listing[mirror.Mirror, mirrorResponse]{
		name: "mirrors", key: key, shape: newMirrorResponse, fetch: pageOf(a.use.Mirrors.List, key),
	}.handle(q)
}

// sendMirror answers with the mirror with a name.
func (a *API) sendMirror(ctx context.Context, status int, name mirror.Name) (answer, error) {
	m, err := a.use.Mirrors.Find(ctx, name)
	if err != nil {
		return answer{}, err
	}
	return object(status, newMirrorResponse(&m)), nil
}

func (a *API) getMirror(q *request) act {
	name := mirror.Name(q.param("name"))
	return func(ctx context.Context) (answer, error) { return a.sendMirror(ctx, http.StatusOK, name) }
}

func (a *API) putMirror(q *request) act {
	b := q.body()
	draft := mirror.Draft{
		Name: q.param("name"), URL: b.Text("url"), Include: b.OptionalTexts("include"),
		Exclude: b.OptionalTexts("exclude"), Interval: q.duration("interval"), Review: b.OptionalText("review"),
		Lenient: b.Flag("lenient"),
	}
	_, err := mirror.New(draft, time.Time{})
	q.check("", err)
	check := conditionOf(q, newMirrorResponse)
	return func(ctx context.Context) (answer, error) {
		m, created, err := a.use.Mirrors.Put(ctx, draft, check)
		if err != nil {
			return answer{}, err
		}
		return putObject(created, newMirrorResponse(&m)), nil
	}
}

// duration returns a member of the body that is a duration like 90m; zero without it.
func (q *request) duration(name string) time.Duration {
	text := q.body().OptionalText(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		q.check(name, fault.New(fault.Invalid, "must be a duration, for example 90m"))
	}
	return d
}

func (a *API) removeMirror(q *request) act {
	name, purge, check := mirror.Name(q.param("name")), q.flag("purge"), conditionOf(q, newMirrorResponse)
	return func(ctx context.Context) (answer, error) {
		_, err := a.use.Mirrors.Remove(ctx, name, purge, check)
		return noContent(), err
	}
}

func (a *API) syncMirror(q *request) act {
	name := mirror.Name(q.param("name"))
	return func(ctx context.Context) (answer, error) {
		if err := a.use.Mirrors.Schedule(ctx, name); err != nil {
			return answer{}, err
		}
		return a.sendMirror(ctx, http.StatusAccepted, name)
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

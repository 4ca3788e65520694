package adminapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// readStream reads a stream of events.
func (s *site) readStream(t *testing.T, query string) (events []object) {
	t.Helper()
	a := s.do(t, "GET", "/audit"+query, nil, append(s.olga.Bearer(), "Accept", "application/x-ndjson")...)
	for line := range strings.Lines(string(a.WantStatus(t, http.StatusOK).Body)) {
		var e object
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

// TestAudit reads the audit log as a list and as a stream, with each filter.
func TestAudit(t *testing.T) {
	s := openSite(t)
	_, olga := fixture.ReadSession(t, s.Service, s.olga)
	pat := s.e.NewWriter(t, s.Service, "pat@example.com", "publish "+everyName)
	for range 2 {
		s.do(t, "PUT", "/views/data", object{"deprecated": "hide"}, s.olga.Bearer()...)
		s.do(t, "PUT", "/methods", object{"methods": []any{}}, s.olga.Bearer()...)
		s.do(t, "DELETE", "/views/data", nil, s.olga.Bearer()...)
	}
	pat.PostJSON(t, s.Service, "/v0.1/publish", fixture.NewServerDocument("com.example/logged", "1.0.0")).WantStatus(t,
		200)
	s.fillAudit(t)
	all := s.readStream(t, "")
	seen := map[string]bool{}
	for i, e := range all { // in the order of the commits, which is not quite that of the times
		if seen[text(e, "id")] {
			t.Errorf("event %d is in the stream twice", i)
		}
		seen[text(e, "id")] = true
	}
	rest := s.readStream(t, "?after="+strings.ToUpper(text(all[9], "id")))
	if len(all) < 400 || len(rest) < len(all)-10 || rest[0]["id"] != all[10]["id"] {
		t.Errorf("after the tenth event of %d there are %d, the first %v", len(all), len(rest), rest[0])
	}
	s.checkAuditFilters(t, all, olga)
	s.want(t, http.StatusNotFound, "GET", "/audit?after="+unknownID, nil, "Accept", "application/x-ndjson")
	s.wantWrong(t, "after", "GET", "/audit?after=x", nil, "Accept", "application/x-ndjson")
	for _, wrong := range []string{
		"type=x", "person=x", "id=x", "since=x", "until=x", "after=" + unknownID, "limit=x", "cursor=x", "actor=%ff",
		"server=%00",
	} {
		name, _, _ := strings.Cut(wrong, "=")
		s.wantWrong(t, name, "GET", "/audit?"+wrong, nil)
	}
}

// fillAudit stores so many refusals that a stream is read in parts.
func (s *site) fillAudit(t *testing.T) {
	t.Helper()
	for range 400 {
		s.do(t, "DELETE", "/views/none", nil, s.eve.Bearer()...)
	}
}

// checkAuditFilters compares what each filter selects, in a stream and in a list, with the whole
// stream.
func (s *site) checkAuditFilters(t *testing.T, all []object, olga string) {
	t.Helper()
	detail := func(e object, name string) any { return e["details"].(object)[name] }
	actor, middle := "person:"+olga, text(all[20], "time")
	for query, matches := range map[string]func(object) bool{
		"actor=" + actor:           func(e object) bool { return detail(e, "actor") == actor },
		"actor=operator":           func(e object) bool { return detail(e, "actor") == "operator" },
		"actor=person:" + olga[:8]: func(object) bool { return false },
		"server=com.example/logged": func(e object) bool {
			return detail(e,
				"serverName") == "com.example/logged"
		},
		"outcome=done":                    func(e object) bool { return e["success"] == true },
		"outcome=refused":                 func(e object) bool { return e["success"] == false },
		"type=METHODS_CHANGE":             func(e object) bool { return e["type"] == "METHODS_CHANGE" },
		"person=" + olga:                  func(e object) bool { return e["person"] == olga },
		"id=" + text(all[3], "id"):        func(e object) bool { return e["id"] == all[3]["id"] },
		"until=" + middle:                 func(e object) bool { return text(e, "time") < middle },
		"since=" + middle:                 func(e object) bool { return text(e, "time") >= middle },
		"since=2020-01-01T00:00:00+01:00": func(object) bool { return true },
	} {
		want := map[any]bool{}
		for _, e := range all {
			if matches(e) {
				want[e["id"]] = true
			}
		}
		stream, listed, cursor := s.readStream(t, "?"+query), []any{}, ""
		for more := true; more; more = cursor != "" {
			page := decode(t, s.read(t, "/audit?limit=100&"+query+"&cursor="+cursor).WantStatus(t, http.StatusOK))
			listed = append(listed, page["events"].([]any)...)
			cursor = text(page["metadata"].(object), "nextCursor")
		}
		missing := len(want)
		for _, e := range listed {
			if want[e.(object)["id"]] {
				missing--
			}
		}
		if len(stream) != len(want) || len(listed) != len(want) || missing != 0 {
			t.Errorf("%s selects %d events in a stream and %d in a list, want %d", query, len(stream), len(listed),
				len(want))
		}
	}
}

package registry

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// countStatuses returns the number of responses by status.
func countStatuses(answers []apiclient.Response) map[int]int {
	counts := map[int]int{}
	for _, a := range answers {
		counts[a.Status]++
	}
	return counts
}

// TestParallelWrites writes to the same server in parallel, on two instances where the environment
// allows two. The instances keep no responses, because an instance may see the writes of another
// one later.
func TestParallelWrites(t *testing.T) {
	t.Parallel()
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		const fromDatabase = "REGISTRY_CACHE_BYTES=0"
		r := openRegistry(t, e, fromDatabase)
		instances := []*fixture.Service{
			r.s, e.Start(t, append(fixture.RegistrySettings(), fromDatabase, "REMOTE_URL_UNIQUE=true")...),
		}
		send := func(i int, method, path string, body any) (apiclient.Response, error) {
			return apiclient.TryCall(method, instances[i%len(instances)].API+"/v0.1"+path, body, r.writer.Bearer()...)
		}
		t.Run("one version", func(t *testing.T) { checkParallelVersion(t, r, send) })
		t.Run("status of all", func(t *testing.T) { checkParallelStatusAll(t, r, send) })
		t.Run("one latest", func(t *testing.T) { checkParallelLatest(t, r, send) })
		t.Run("grant taken", func(t *testing.T) { checkParallelGrant(t, r, instances) })
	})
}

type sender func(i int, method, path string, body any) (apiclient.Response, error)

func checkParallelVersion(t *testing.T, r *registry, send sender) {
	const name = "com.example.parallel/version"
	answers := fixture.CallInParallel(t, 20, func(i int) (apiclient.Response, error) {
		return send(i, "POST", "/publish",
			fixture.WithProperty(fixture.NewServerDocument(name, "1.0.0"), "title", fmt.Sprintf("By %d", i)))
	})
	if got := countStatuses(answers); got[http.StatusOK] != 1 || got[http.StatusConflict] != 19 {
		t.Fatalf("20 publications of one version answer %v", got)
	}
	won := answers[slices.IndexFunc(answers, func(a apiclient.Response) bool { return a.Status == http.StatusOK })]
	if stored := decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.0.0"))); !equalJSON(t, stored,
		decodeRecord(t, won)) {
		t.Errorf("stored is %+v, answered was %s", stored, won.Body)
	}
}

func checkParallelStatusAll(t *testing.T, r *registry, send sender) {
	const name = "com.example.parallel/all"
	for i := range 12 {
		r.publish(t, name, fmt.Sprintf("1.%d.0", i))
	}
	for _, status := range []string{"deprecated", "deleted", "active"} {
		answers := fixture.CallInParallel(t, 2, func(i int) (apiclient.Response, error) {
			return send(i, "PATCH", fixture.ServerPath(name)+"/status", map[string]string{"status": status})
		})
		if got := countStatuses(answers); got[http.StatusOK] != 1 || got[http.StatusBadRequest] != 1 {
			t.Errorf("two changes of all to %s answer %v", status, got)
		}
	}
	// with different targets: the result must be one of them
	fixture.CallInParallel(t, 2, func(i int) (apiclient.Response, error) {
		return send(i, "PATCH", fixture.ServerPath(name)+"/status", map[string]string{
			"status": []string{"deprecated", "deleted"}[i],
		})
	})
	found := map[string]bool{}
	for _, v := range r.list(t, fixture.ServerPath(name)+"/versions?include_deleted=true").Servers {
		found[v.Official().Status] = true
	}
	if len(found) != 1 {
		t.Errorf("after two changes of all there are versions that are %v", found)
	}
}

// checkParallelLatest publishes 20 versions, in a long run 50, and changes their status during
// reads. Exactly one version is the latest at every moment.
func checkParallelLatest(t *testing.T, r *registry, send sender) {
	const name, writing = "com.example.parallel/latest", 5
	each := 4
	if !testing.Short() {
		each = 10
	}
	r.publish(t, name, "0.0.1")
	var writers, watchers sync.WaitGroup
	done := make(chan struct{})
	watch := func(look func() error) {
		watchers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := look(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for _, query := range []string{
		"/servers?version=latest&search=" + name, "/servers?version=latest&include_deleted=true&search=" + name,
	} {
		watch(func() error { return checkLatestSeen(send, query, true) })
	}
	watch(func() error {
		return checkLatestSeen(send, fixture.ServerPath(name)+"/versions?include_deleted=true", false)
	})
	watch(func() error {
		a, err := send(0, "GET", fixture.ServerPath(name, "latest"), nil)
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("latest answers %d %s", a.Status, a.Body)
		}
		return err
	})
	for w := range writing {
		writers.Go(func() {
			for i := range each {
				version := fmt.Sprintf("%d.%d.0", (i*7+w*3)%10, w)
				steps := []struct {
					method, path string
					body         any
				}{{"POST", "/publish", fixture.NewServerDocument(name, version)}}
				if i%2 == 0 {
					steps = append(steps, steps[0], steps[0])
					steps[1].method, steps[1].path, steps[1].body = "PATCH",
						fixture.ServerPath(name, version)+"/status", map[string]string{"status": "deprecated"}
					steps[2].method, steps[2].path, steps[2].body = "DELETE", fixture.ServerPath(name, version), nil
				}
				for _, s := range steps {
					if a, err := send(w, s.method, s.path, s.body); err != nil || a.Status != http.StatusOK {
						t.Errorf("%s %s: %v %d %s", s.method, s.path, err, a.Status, a.Body)
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	watchers.Wait()
	wantLatest(t, r, name, greatestVersion(t, r, name, 1+writing*each/2), []string{"publications"})
}

// checkLatestSeen checks that a query shows one latest version, and no other version if it selects
// the latest only.
func checkLatestSeen(send sender, path string, alone bool) error {
	a, err := send(1, "GET", path, nil)
	if err != nil {
		return err
	}
	l, err := fixture.ParseServerPage(a)
	if err != nil {
		return err
	}
	latest := 0
	for _, v := range l.Servers {
		if v.Official().IsLatest {
			latest++
		}
	}
	if latest != 1 || alone && len(l.Servers) != 1 {
		return fmt.Errorf("%s shows %d versions, %d of them latest", path, len(l.Servers), latest)
	}
	return nil
}

// greatestVersion returns the greatest of the n versions a.b.0 that are not deleted; the numbers
// have one digit.
func greatestVersion(t *testing.T, r *registry, name string, n int) string {
	t.Helper()
	var versions []string
	for _, v := range r.list(t, fixture.ServerPath(name)+"/versions").Servers {
		versions = append(versions, v.Server["version"].(string))
	}
	if len(versions) != n {
		t.Errorf("%d versions are not deleted, want %d", len(versions), n)
	}
	return slices.Max(versions)
}

// checkParallelGrant takes a grant away while its holder writes. Requests that start after that
// must change nothing.
func checkParallelGrant(t *testing.T, r *registry, instances []*fixture.Service) {
	p := r.NewWriter(t, r.s, "taken@example.com", "publish com.example.taken/*")
	var group sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := apiclient.TryCall("POST", instances[w%len(instances)].API+"/v0.1/publish",
					fixture.NewServerDocument(fmt.Sprintf("com.example.taken/s%d-%d", w, i), "1.0.0"), p.Bearer()...)
				if err != nil || a.Status != http.StatusOK && a.Status != http.StatusForbidden {
					t.Errorf("publish answers %v %d %s", err, a.Status, a.Body)
				}
				if err != nil || a.Status != http.StatusOK {
					return
				}
			}
		})
	}
	r.RunCommand(t, "", "grant", "remove", "--email", p.Email, "--action", "publish", "--resource",
		"com.example.taken/*")
	for i, s := range instances {
		apiclient.Call(t, "POST", s.API+"/v0.1/publish",
			fixture.NewServerDocument(fmt.Sprintf("com.example.taken/after%d", i), "1.0.0"), p.Bearer()...).
			WantStatus(t, http.StatusForbidden)
	}
	close(stop)
	group.Wait()
}

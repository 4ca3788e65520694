package acceptance

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// together runs n calls at once and returns their answers.
func together(t *testing.T, n int, send func(i int) (answer, error)) []answer {
	t.Helper()
	answers, errs := make([]answer, n), make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { answers[i], errs[i] = send(i) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return answers
}

// statuses counts answers by their status.
func statuses(answers []answer) map[int]int {
	counts := map[int]int{}
	for _, a := range answers {
		counts[a.status]++
	}
	return counts
}

// TestParallelWrites lets many write to the same server at once, to two
// instances where there may be two.
func TestParallelWrites(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		r := openRegistry(t, e)
		instances := []*service{r.s, e.start(t, registryEnviron()...)}
		send := func(i int, method, path string, body any) (answer, error) {
			return try(method, instances[i%len(instances)].api+"/v0.1"+path, body, r.writer.bearer()...)
		}
		t.Run("one version", func(t *testing.T) { parallelVersion(t, r, send) })
		t.Run("one remote URL", func(t *testing.T) { parallelRemote(t, r, send) })
		t.Run("status of all", func(t *testing.T) { parallelStatusAll(t, r, send) })
		t.Run("deletion", func(t *testing.T) { parallelDelete(t, r, send) })
		t.Run("one latest", func(t *testing.T) { parallelLatest(t, r, send) })
		t.Run("grant taken", func(t *testing.T) { parallelGrant(t, r, instances) })
	})
}

type sender func(i int, method, path string, body any) (answer, error)

func parallelVersion(t *testing.T, r *registry, send sender) {
	const name = "com.example.parallel/version"
	answers := together(t, 20, func(i int) (answer, error) {
		return send(i, "POST", "/publish", with(document(name, "1.0.0"), "title", fmt.Sprintf("By %d", i)))
	})
	if got := statuses(answers); got[http.StatusOK] != 1 || got[http.StatusConflict] != 19 {
		t.Fatalf("20 publications of one version answer %v", got)
	}
	won := answers[slices.IndexFunc(answers, func(a answer) bool { return a.status == http.StatusOK })]
	if stored := one(t, r.get(t, at(name, "1.0.0"))); !same(t, stored, one(t, won)) {
		t.Errorf("stored is %+v, answered was %s", stored, won.body)
	}
}

func parallelRemote(t *testing.T, r *registry, send sender) {
	answers := together(t, 10, func(i int) (answer, error) {
		doc := document(fmt.Sprintf("com.example.parallel/remote%d", i), "1.0.0")
		doc["remotes"] = []any{map[string]any{"type": "sse", "url": "https://one.parallel.example"}}
		return send(i, "POST", "/publish", doc)
	})
	if got := statuses(answers); got[http.StatusOK] != 1 || got[http.StatusConflict] != 9 {
		t.Errorf("10 servers with one remote URL answer %v", got)
	}
	if got := r.list(t, "/servers?search=com.example.parallel/remote"); len(got.Servers) != 1 {
		t.Errorf("stored are %v", got.names())
	}
}

func parallelStatusAll(t *testing.T, r *registry, send sender) {
	const name = "com.example.parallel/all"
	for i := range 12 {
		r.publish(t, name, fmt.Sprintf("1.%d.0", i))
	}
	for _, status := range []string{"deprecated", "deleted", "active"} {
		answers := together(t, 2, func(i int) (answer, error) {
			return send(i, "PATCH", at(name)+"/status", map[string]string{"status": status})
		})
		if got := statuses(answers); got[http.StatusOK] != 1 || got[http.StatusBadRequest] != 1 {
			t.Errorf("two changes of all to %s answer %v", status, got)
		}
	}
	together(t, 2, func(i int) (answer, error) { // to different ends: one of them whole
		return send(i, "PATCH", at(name)+"/status", map[string]string{"status": []string{"deprecated", "deleted"}[i]})
	})
	found := map[string]bool{}
	for _, v := range r.list(t, at(name)+"/versions?include_deleted=true").Servers {
		found[v.official().Status] = true
	}
	if len(found) != 1 {
		t.Errorf("after two changes of all there are versions that are %v", found)
	}
}

func parallelDelete(t *testing.T, r *registry, send sender) {
	const name = "com.example.parallel/delete"
	r.publish(t, name, "1.0.0")
	answers := together(t, 10, func(i int) (answer, error) { return send(i, "DELETE", at(name, "1.0.0"), nil) })
	if got := statuses(answers); got[http.StatusOK] != 1 || got[http.StatusNotFound] != 9 {
		t.Errorf("10 deletions answer %v", got)
	}
}

// parallelLatest publishes 100 versions and changes their status, while
// readers look: one version is latest at every moment, never none or two.
func parallelLatest(t *testing.T, r *registry, send sender) {
	const name = "com.example.parallel/latest"
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
	for _, query := range []string{"/servers?version=latest&search=" + name, "/servers?version=latest&include_deleted=true&search=" + name} {
		watch(func() error { return seesLatest(send, query, true) })
	}
	watch(func() error { return seesLatest(send, at(name)+"/versions?include_deleted=true", false) })
	watch(func() error {
		a, err := send(0, "GET", at(name, "latest"), nil)
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("latest answers %d %s", a.status, a.body)
		}
		return err
	})
	for w := range 10 {
		writers.Go(func() {
			for i := range 10 {
				version := fmt.Sprintf("%d.%d.0", (i*7+w*3)%10, w)
				steps := []struct {
					method, path string
					body         any
				}{{"POST", "/publish", document(name, version)}}
				if i%2 == 0 {
					steps = append(steps, steps[0], steps[0])
					steps[1].method, steps[1].path, steps[1].body = "PATCH", at(name, version)+"/status", map[string]string{"status": "deprecated"}
					steps[2].method, steps[2].path, steps[2].body = "DELETE", at(name, version), nil
				}
				for _, s := range steps {
					if a, err := send(w, s.method, s.path, s.body); err != nil || a.status != http.StatusOK {
						t.Errorf("%s %s: %v %d %s", s.method, s.path, err, a.status, a.body)
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	watchers.Wait()
	wantLatest(t, r, name, greatest(t, r, name), []string{"100 publications"})
}

// seesLatest wants one latest version among those that a query shows, and no
// other when only latest ones are asked for.
func seesLatest(send sender, path string, alone bool) error {
	a, err := send(1, "GET", path, nil)
	if err != nil {
		return err
	}
	l, err := parseList(a)
	if err != nil {
		return err
	}
	latest := 0
	for _, v := range l.Servers {
		if v.official().IsLatest {
			latest++
		}
	}
	if latest != 1 || alone && len(l.Servers) != 1 {
		return fmt.Errorf("%s shows %d versions, %d of them latest", path, len(l.Servers), latest)
	}
	return nil
}

// greatest returns the greatest version a.b.0 that is not deleted; the numbers
// have one digit.
func greatest(t *testing.T, r *registry, name string) string {
	t.Helper()
	var versions []string
	for _, v := range r.list(t, at(name)+"/versions").Servers {
		versions = append(versions, v.Server["version"].(string))
	}
	if len(versions) != 51 {
		t.Errorf("%d versions are not deleted, want 51", len(versions))
	}
	return slices.Max(versions)
}

// parallelGrant takes a grant while its holder writes: of what is asked for
// afterwards nothing is done.
func parallelGrant(t *testing.T, r *registry, instances []*service) {
	p := r.writerFor(t, r.s, "taken@example.com", "publish com.example.taken/*")
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
				a, err := try("POST", instances[w%len(instances)].api+"/v0.1/publish", document(fmt.Sprintf("com.example.taken/s%d-%d", w, i), "1.0.0"), p.bearer()...)
				if err != nil || a.status != http.StatusOK && a.status != http.StatusForbidden {
					t.Errorf("publish answers %v %d %s", err, a.status, a.body)
				}
				if err != nil || a.status != http.StatusOK {
					return
				}
			}
		})
	}
	r.tollgate(t, "", "grant", "remove", "--email", p.email, "--action", "publish", "--resource", "com.example.taken/*")
	for i, s := range instances {
		call(t, "POST", s.api+"/v0.1/publish", document(fmt.Sprintf("com.example.taken/after%d", i), "1.0.0"), p.bearer()...).want(t, http.StatusForbidden)
	}
	close(stop)
	group.Wait()
}

package registry

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestReadsAreCoherent changes a version through two instances, 150 times, while clients read it
// through both, 1,200 times, in four different responses; in a long run, 1,000 and 9,000 times. The
// n-th change sets the message n. No response is older than
//   - the changes that were finished a second before the read (contract R-20),
//   - the changes that the same instance had finished before,
//   - a response that the same instance had sent before.
func TestReadsAreCoherent(t *testing.T) {
	t.Parallel()
	const readers = 6
	changes, reads := 150, 200
	if !testing.Short() {
		changes, reads = 1_000, 1_500
	}
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		r := openRegistry(t, e)
		instances := []*fixture.Service{r.s, e.Start(t, fixture.RegistrySettings()...)}
		const name = "com.example.coherent/a"
		r.publish(t, name, "1.0.0")
		h := &coherence{seen: make([]int, len(instances)), written: make([]int, len(instances))}
		var all sync.WaitGroup
		all.Go(func() {
			for n := 1; n <= changes; n++ {
				i := rand.IntN(len(instances))
				status := map[string]string{"status": "deprecated", "statusMessage": strconv.Itoa(n)}
				a, err := apiclient.TryCall("PATCH",
					instances[i].API+"/v0.1"+fixture.ServerPath(name, "1.0.0")+"/status", status, r.writer.Bearer()...)
				if err != nil || a.Status != http.StatusOK {
					t.Errorf("change %d: %v, %d %s", n, err, a.Status, a.Body)
					return
				}
				h.noteChange(i, n)
			}
		})
		paths := []string{
			fixture.ServerPath(name, "latest"), fixture.ServerPath(name, "1.0.0"),
			fixture.ServerPath(name) + "/versions",
			"/servers?search=coherent&version=latest",
		}
		for range readers {
			all.Go(func() {
				for range reads {
					i, path := rand.IntN(len(instances)), paths[rand.IntN(len(paths))]
					least, why := h.leastChange(i)
					a, err := apiclient.TryCall("GET", instances[i].API+"/v0.1"+path, nil)
					if err != nil || a.Status != http.StatusOK {
						t.Errorf("%s: %v, %d %s", path, err, a.Status, a.Body)
						return
					}
					n, err := readMessage(a.Body)
					if err != nil || n < least {
						t.Errorf("instance %d, %s: change %d (%v) after change %d, %s; Warning %q", i, path, n, err,
							least, why, a.Header.Get("Warning"))
						return
					}
					h.noteRead(i, n)
				}
			})
		}
		all.Wait()
	})
}

var messageForm = regexp.MustCompile(`"statusMessage":"(\d+)"`)

// readMessage returns the number in the only status message of a response, or 0 without one.
func readMessage(body []byte) (int, error) {
	found := messageForm.FindAllSubmatch(body, -1)
	switch len(found) {
	case 0:
		return 0, nil
	case 1:
		n, err := strconv.Atoi(string(found[0][1]))
		if err != nil {
			return 0, fmt.Errorf("the message is no number: %w", err)
		}
		return n, nil
	}
	return 0, fmt.Errorf("%d messages", len(found))
}

// coherence is what is known of changes and responses.
type coherence struct {
	mu       sync.Mutex
	finished []time.Time // when the n-th change was finished, at n-1
	written  []int       // the last change by instance
	seen     []int       // the last change in a response by instance
}

func (h *coherence) noteChange(instance, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.finished = append(h.finished, time.Now())
	h.written[instance] = n
}

func (h *coherence) noteRead(instance, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[instance] = max(h.seen[instance], n)
}

// leastChange returns the oldest change that a response which begins now may show, and why.
func (h *coherence) leastChange(instance int) (n int, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	limit := time.Now().Add(-time.Second)
	for n = len(h.finished); n > 0 && h.finished[n-1].After(limit); {
		n--
	}
	why = "finished a second before"
	if h.written[instance] > n {
		n, why = h.written[instance], "by the same instance"
	}
	if h.seen[instance] > n {
		n, why = h.seen[instance], "in a response of the same instance"
	}
	return n, why
}

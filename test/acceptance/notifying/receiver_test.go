package notifying

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// secretPath and secretKey are in the URLs of all receivers. They must be in no log.
const (
	secretPath = "/hook-path-4711"
	secretKey  = "hook-key-4712"
)

// received is a request that a receiver got.
type received struct {
	body   string
	event  event
	status int // of the response
}

// event is the body of a request.
type event struct {
	ID, Type, Time      string
	ServerName, Version *string
	Data                json.RawMessage
}

// label returns the type, the server without its namespace and the version of an event.
func (e *event) label() string {
	name, version := "-", "-"
	if e.ServerName != nil {
		name = (*e.ServerName)[strings.LastIndex(*e.ServerName, "/")+1:]
	}
	if e.Version != nil {
		version = *e.Version
	}
	return e.Type + " " + name + " " + version
}

// receiver checks each request and keeps it.
type receiver struct {
	t       *testing.T
	address string
	server  *httptest.Server

	mu       sync.Mutex
	secret   string
	answer   func(e event, attempt int) int // the status of the response
	requests []received
	attempts map[string]int // by ID of event
	open     map[string]int // requests in progress by server

	mayOverlap bool // requests about one server may be in progress at the same time

	most     int      // requests in progress at the same time
	failures []string // what no request may be
}

// newReceiver starts a receiver that answers 204 until the test ends.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{
		t: t, address: net.JoinHostPort("127.0.0.1", instance.FreePort()), attempts: map[string]int{},
		open:   map[string]int{},
		answer: func(event, int) int { return http.StatusNoContent },
	}
	r.start()
	t.Cleanup(func() {
		r.stop()
		for _, failure := range r.failures {
			t.Error(failure)
		}
	})
	return r
}

// start listens, at the same address as before.
func (r *receiver) start() {
	r.t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", r.address)
	must.Succeed(r.t, err)
	r.address, r.server = listener.Addr().String(), httptest.NewUnstartedServer(r)
	_ = r.server.Listener.Close() // it is replaced
	r.server.Listener = listener
	r.server.Start()
}

// stop ends the receiver, as if its machine were away.
func (r *receiver) stop() {
	r.server.CloseClientConnections()
	r.server.Close()
}

func (r *receiver) url() string { return "http://" + r.address + secretPath + "?key=" + secretKey }

// setAnswer sets the status of the responses to an event by the number of the attempt, from 1 on.
func (r *receiver) setAnswer(answer func(e event, attempt int) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// ServeHTTP implements [http.Handler].
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var e event
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	r.mu.Lock()
	if failure := r.check(q, body); failure != "" || err != nil {
		r.failures = append(r.failures, fmt.Sprintf("%s %v: %s", failure, err, body))
	}
	r.attempts[e.ID]++
	server, attempt, answer := e.label(), r.attempts[e.ID], r.answer
	if e.ServerName != nil {
		server = *e.ServerName
	}
	r.open[server]++
	if r.open[server] > 1 && !r.mayOverlap {
		r.failures = append(r.failures, fmt.Sprintf("two requests about %s at the same time: %s", server, body))
	}
	inProgress := 0
	for _, n := range r.open {
		inProgress += n
	}
	r.most = max(r.most, inProgress)
	r.mu.Unlock()
	status := answer(e, attempt)
	r.mu.Lock()
	r.open[server]--
	r.requests = append(r.requests, received{string(body), e, status})
	r.mu.Unlock()
	w.WriteHeader(status)
}

var signature = regexp.MustCompile(`^t=(\d+),v1=([0-9a-f]{64})$`)

// check returns what is wrong with a request, or "". It computes the signature on its own (contract
// C-53).
func (r *receiver) check(q *http.Request, body []byte) string {
	parts := signature.FindStringSubmatch(q.Header.Get("X-Tollgate-Signature"))
	if parts == nil {
		return "no signature: " + q.Header.Get("X-Tollgate-Signature")
	}
	unix, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || time.Since(time.Unix(unix, 0)).Abs() > time.Minute {
		return "the signature is of another time: " + parts[1]
	}
	if r.secret == "" {
		return "a request arrived before the webhook was added"
	}
	mac := hmac.New(sha256.New, []byte(r.secret))
	_, _ = fmt.Fprintf(mac, "%s.%s", parts[1], body) // a hash never fails to write
	if hex.EncodeToString(mac.Sum(nil)) != parts[2] {
		return "the signature is wrong"
	}
	if q.Method != http.MethodPost || q.RequestURI != secretPath+"?key="+secretKey ||
		q.Header.Get("Content-Type") != "application/json" || q.UserAgent() != "tollgate" {
		return fmt.Sprintf("%s %s with %v", q.Method, q.RequestURI, q.Header)
	}
	return ""
}

// all returns all requests.
func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// accepted returns the events that the receiver accepted, in their order.
func (r *receiver) accepted() []received {
	return slices.DeleteFunc(r.all(), func(q received) bool { return q.status != http.StatusNoContent })
}

// labels returns the labels of events.
func labels(list []received) []string {
	all := []string{}
	for i := range list {
		all = append(all, list[i].event.label())
	}
	return all
}

// awaitEvents waits until the receiver has accepted a number of events, and checks that they are
// those of the labels, in this order.
func (r *receiver) awaitEvents(want ...string) []received {
	r.t.Helper()
	await.Until(r.t, fmt.Sprintf("%d events", len(want)), func() bool { return len(r.accepted()) >= len(want) })
	got := r.accepted()
	if !slices.Equal(labels(got), want) {
		r.t.Fatalf("the events are %q, want %q", labels(got), want)
	}
	return got
}

// forget forgets all requests.
func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// webhook is a webhook in the output of commands.
type webhook struct {
	ID, URL, Pattern, CreatedAt, Secret   string
	Events                                []string
	Pending, Dead                         int
	LastSuccess, LastFailure, LastProblem string
	DeadEvents                            []struct {
		ID, Type, ServerName, DeadSince, Problem string
		Version                                  *string
		Attempts                                 int
	}
}

// allEvents are the names of all types.
const allEvents = "published,replaced,status,approved,rejected,changes_requested,quarantined,released"

// add adds a webhook for the receiver and returns its ID.
func (r *receiver) add(e *fixture.Environment, events, pattern string) string {
	r.t.Helper()
	var added []webhook
	e.ReadCommand(r.t, &added, "webhook", "add", r.url(), "--events", events, "--pattern", pattern)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = added[0].Secret
	return added[0].ID
}

// readWebhook returns the webhook with an ID from the list.
func readWebhook(t *testing.T, e *fixture.Environment, id string) webhook {
	t.Helper()
	var list []webhook
	e.ReadCommand(t, &list, "webhook", "list")
	i := slices.IndexFunc(list, func(w webhook) bool { return w.ID == id })
	if i < 0 {
		t.Fatalf("the list has no webhook %s: %+v", id, list)
	}
	return list[i]
}

// awaitAnyOrder is awaitEvents for events of several servers, which may come in any order.
func (r *receiver) awaitAnyOrder(want ...string) {
	r.t.Helper()
	await.Until(r.t, fmt.Sprintf("%d events", len(want)), func() bool { return len(r.accepted()) >= len(want) })
	got := labels(r.accepted())
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("the events are %q, want %q", got, want)
	}
}

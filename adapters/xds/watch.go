package xds

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	discoverypb "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/sirupsen/logrus"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

const (
	// typeURL is the type of the resources (contract L-38).
	typeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
	// refusalGap is the minimum time between two refusals. Some servers send a refused set again at
	// once, which would result in an endless loop.
	refusalGap = time.Second
	// maxReason is the maximum length of a refusal's reason in bytes, which is far less than
	// servers accept.
	maxReason = 16 << 10
)

// adsStream is a stream of the aggregated discovery service.
type adsStream = grpc.BidiStreamingClient[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse]

// watchState is the state that Watch keeps over all its streams.
type watchState struct {
	*Source
	apply   func([]ruleset.Source) error
	backoff *backoff.ExponentialBackOff
	seed    maphash.Seed

	version     string    // of the set in force; empty if there is no set
	accepted    setDigest // the set in force
	refused     setDigest // the last set, if it was refused
	reason      string
	lastRefusal time.Time // when the last refusal was sent
}

// newWatch returns the state at the start of a Watch.
func newWatch(s *Source, apply func([]ruleset.Source) error) *watchState {
	c := s.config.Backoff
	return &watchState{
		Source: s, apply: apply, seed: maphash.MakeSeed(),
		backoff: &backoff.ExponentialBackOff{
			InitialInterval: min(c.Initial, c.Max), MaxInterval: c.Max,
			RandomizationFactor: c.jitterFactor(), Multiplier: backoff.DefaultMultiplier,
		},
	}
}

// runStream opens one stream, handles its responses until it ends, and returns the reason.
func (w *watchState) runStream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, w.headers))
	defer cancel()
	stream, err := w.openStream(ctx)
	if err != nil {
		return err
	}
	if err := w.sendRequest(stream, &discoverypb.DiscoveryRequest{}); err != nil {
		return err
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("receive from the management server: %w", err)
		}
		if err := w.handleResponse(ctx, stream, response); err != nil {
			return err
		}
	}
}

// openStream waits until the server can be reached. It logs once that it cannot.
func (w *watchState) openStream(ctx context.Context) (adsStream, error) {
	client := discoverypb.NewAggregatedDiscoveryServiceClient(w.conn)
	stream, err := client.StreamAggregatedResources(ctx)
	if err == nil {
		return stream, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w.log.WithError(err).WithField("retry_every", w.config.RetryInterval.String()).
		Warn("the management server cannot be reached; trying again until it can")
	stream, err = client.StreamAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("open a stream to the management server: %w", err)
	}
	return stream, nil
}

// sendRequest adds the common fields to a request and sends it. If the stream has ended, it returns
// no error, because Recv returns the reason.
func (w *watchState) sendRequest(stream adsStream, r *discoverypb.DiscoveryRequest) error {
	r.Node, r.TypeUrl, r.VersionInfo = w.node, typeURL, w.version
	if err := stream.Send(r); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("send to the management server: %w", err)
	}
	return nil
}

// handleResponse applies a set and acknowledges it, or refuses it with the reason.
func (w *watchState) handleResponse(ctx context.Context, stream adsStream, r *discoverypb.DiscoveryResponse) error {
	if messageName(r.GetTypeUrl()) != messageName(typeURL) {
		w.log.WithField("type_url", r.GetTypeUrl()).
			Warn("the management server sent a resource type that was not requested; it is ignored")
		return nil
	}
	w.backoff.Reset()
	set := w.digestSet(r.GetResources())
	if set != w.accepted && set != w.refused {
		w.applySet(r, set)
	}
	if set == w.refused {
		return w.sendRefusal(ctx, stream, r)
	}
	w.version = r.GetVersionInfo()
	w.refused = setDigest{}
	return w.sendRequest(stream, &discoverypb.DiscoveryRequest{ResponseNonce: r.GetNonce()})
}

// applySet applies a set that differs from the accepted and the refused one.
func (w *watchState) applySet(r *discoverypb.DiscoveryResponse, set setDigest) {
	var d decoder
	sources := d.decodeSet(r.GetResources())
	if len(d.unknown) > 0 {
		w.log.WithFields(logrus.Fields{"first": d.unknown[0], "places": len(d.unknown), "version": r.GetVersionInfo()}).
			Warn("the management server sent fields that this version does not know; they are ignored")
	}
	w.delivered.Store(&sources)
	if err := w.apply(sources); err != nil {
		w.refused, w.reason = set, shortReason(err.Error())
		return
	}
	w.accepted = set
	w.log.WithField("version", r.GetVersionInfo()).Debug("the configuration of the management server is in force")
}

// sendRefusal sends the reason of a refusal, with the version that stays in force.
func (w *watchState) sendRefusal(ctx context.Context, stream adsStream, r *discoverypb.DiscoveryResponse) error {
	if !pause.For(ctx, time.Until(w.lastRefusal.Add(refusalGap))) {
		return ctx.Err()
	}
	w.lastRefusal = time.Now()
	return w.sendRequest(stream, &discoverypb.DiscoveryRequest{
		ResponseNonce: r.GetNonce(),
		ErrorDetail:   &statuspb.Status{Code: int32(codes.InvalidArgument), Message: w.reason},
	})
}

// logStreamEnd logs why a stream ended, and when the next one starts.
func (w *watchState) logStreamEnd(err error, next time.Duration) {
	line := w.log.WithError(err).WithField("retry_in", next.Round(time.Millisecond).String())
	if status.Code(err) == codes.ResourceExhausted {
		line = line.WithField("largest_message", w.config.maxMessageSize())
	}
	line.Warn("the stream of the management server ended; the configuration stays in force")
}

// setDigest identifies a set. It does not depend on the order of the resources. Its zero value is
// no set.
type setDigest struct {
	known bool
	count int
	sum   uint64
}

func (w *watchState) digestSet(resources []*anypb.Any) setDigest {
	d := setDigest{known: true, count: len(resources)}
	var h maphash.Hash
	h.SetSeed(w.seed)
	for _, r := range resources {
		h.Reset()
		_, _ = h.WriteString(r.GetTypeUrl()) // never fails
		_ = h.WriteByte(0)
		_, _ = h.Write(r.GetValue())
		d.sum += h.Sum64()
	}
	return d
}

// messageName returns the name of the message in a type URL, {prefix}/{name}. The prefix has no
// meaning.
func messageName(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// shortReason returns a reason of at most maxReason bytes, cut after a whole line.
func shortReason(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	const rest = "\n(and more)"
	cut := strings.ToValidUTF8(reason[:maxReason-len(rest)], "")
	if i := strings.LastIndexByte(cut, '\n'); i > 0 {
		cut = cut[:i]
	}
	return cut + rest
}

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

	"github.com/tollgate-dev/tollgate/adapters/pause"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

const (
	// typeURL is the type of the resources (contract L-38).
	typeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
	// refusalGap is the least time between two refusals: some servers send a set that was refused again at once, and would
	// go round and round with us.
	refusalGap = time.Second
	// maxReason bounds the reason of a refusal in bytes, far below what servers take.
	maxReason = 16 << 10
)

// adsStream is one stream of aggregated discovery.
type adsStream = grpc.BidiStreamingClient[discoverypb.DiscoveryRequest, discoverypb.DiscoveryResponse]

// watch is what one Watch knows over all its streams.
type watch struct {
	*Source
	apply func([]ruleset.Source) error
	pause *backoff.ExponentialBackOff
	seed  maphash.Seed

	version  string // of the set in force; empty for none
	accepted digest // the set in force
	refused  digest // the set that was refused since
	reason   string
	told     time.Time // when the last refusal was sent
}

func newWatch(s *Source, apply func([]ruleset.Source) error) *watch {
	c := s.config.Backoff
	return &watch{
		Source: s, apply: apply, seed: maphash.MakeSeed(),
		pause: &backoff.ExponentialBackOff{
			InitialInterval: min(c.Initial, c.Max), MaxInterval: c.Max,
			RandomizationFactor: c.factor(), Multiplier: backoff.DefaultMultiplier,
		},
	}
}

// stream opens one stream and takes what it delivers until it ends; it returns
// why.
func (w *watch) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, w.headers))
	defer cancel()
	stream, err := w.open(ctx)
	if err != nil {
		return err
	}
	if err := w.send(stream, &discoverypb.DiscoveryRequest{}); err != nil {
		return err
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("receive from the management server: %w", err)
		}
		if err := w.take(ctx, stream, response); err != nil {
			return err
		}
	}
}

// open waits until the server can be reached, and tells once when it cannot.
func (w *watch) open(ctx context.Context) (adsStream, error) {
	client := discoverypb.NewAggregatedDiscoveryServiceClient(w.conn)
	stream, err := client.StreamAggregatedResources(ctx)
	if err == nil {
		return stream, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w.log.WithError(err).WithField("retry_every", w.config.RetryInterval.String()).
		Warn("the management server cannot be reached, and is tried again until it can")
	stream, err = client.StreamAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("open a stream to the management server: %w", err)
	}
	return stream, nil
}

// send completes a request with what every one of them says, and sends it. The
// reason of a stream that has ended is left to Recv.
func (w *watch) send(stream adsStream, r *discoverypb.DiscoveryRequest) error {
	r.Node, r.TypeUrl, r.VersionInfo = w.node, typeURL, w.version
	if err := stream.Send(r); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("send to the management server: %w", err)
	}
	return nil
}

// take brings a set into force and says so, or why not.
func (w *watch) take(ctx context.Context, stream adsStream, r *discoverypb.DiscoveryResponse) error {
	if messageName(r.GetTypeUrl()) != messageName(typeURL) {
		w.log.WithField("type_url", r.GetTypeUrl()).Warn("the management server sent a resource type that was not requested; it is ignored")
		return nil
	}
	w.pause.Reset()
	set := w.digest(r.GetResources())
	if set != w.accepted && set != w.refused {
		w.bring(r, set)
	}
	if set == w.refused {
		return w.refuse(ctx, stream, r)
	}
	w.version = r.GetVersionInfo()
	w.refused = digest{}
	return w.send(stream, &discoverypb.DiscoveryRequest{ResponseNonce: r.GetNonce()})
}

// bring applies a set that is new.
func (w *watch) bring(r *discoverypb.DiscoveryResponse, set digest) {
	var d decoder
	sources := d.decode(r.GetResources())
	if len(d.unknown) > 0 {
		w.log.WithFields(logrus.Fields{"first": d.unknown[0], "places": len(d.unknown), "version": r.GetVersionInfo()}).
			Warn("the management server sent fields that this version does not know, which are ignored")
	}
	w.delivered.Store(&sources)
	if err := w.apply(sources); err != nil {
		w.refused, w.reason = set, bounded(err.Error())
		return
	}
	w.accepted = set
	w.log.WithField("version", r.GetVersionInfo()).Debug("the configuration of the management server is in force")
}

// refuse tells the reason of a refusal, with the version that stays in force.
func (w *watch) refuse(ctx context.Context, stream adsStream, r *discoverypb.DiscoveryResponse) error {
	if !pause.For(ctx, time.Until(w.told.Add(refusalGap))) {
		return ctx.Err()
	}
	w.told = time.Now()
	return w.send(stream, &discoverypb.DiscoveryRequest{
		ResponseNonce: r.GetNonce(),
		ErrorDetail:   &statuspb.Status{Code: int32(codes.InvalidArgument), Message: w.reason},
	})
}

// sayEnded tells why a stream ended.
func (w *watch) sayEnded(err error, next time.Duration) {
	line := w.log.WithError(err).WithField("retry_in", next.Round(time.Millisecond).String())
	if status.Code(err) == codes.ResourceExhausted {
		line = line.WithField("largest_message", w.config.maxMessage())
	}
	line.Warn("the stream of the management server ended; the configuration stays as it is")
}

// digest tells sets apart, whatever the order of their resources. Its zero value
// is no set.
type digest struct {
	known bool
	count int
	sum   uint64
}

func (w *watch) digest(resources []*anypb.Any) digest {
	d := digest{known: true, count: len(resources)}
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

// messageName is the part of a type URL that counts: {prefix}/{name}.
func messageName(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// bounded cuts a reason behind a whole line where it is too long.
func bounded(reason string) string {
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

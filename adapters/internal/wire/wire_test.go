package wire_test

import (
	"bytes"
	"strings"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
	"github.com/tollgate-dev/tollgate/test/must"
)

// text is a message with one text.
type text struct{ value string }

const tag = 1<<3 | wire.Bytes

func (m *text) UnmarshalBinary(data []byte) error {
	r := wire.NewReader(data)
	for r.Next() {
		if r.Tag() == tag {
			m.value = r.Text()
		} else {
			r.Skip()
		}
	}
	return r.Err()
}

func (m *text) AppendBinary(dst []byte) ([]byte, error) {
	return wire.AppendText(dst, tag, m.value), nil
}

// TestCodec writes and reads a message of both kinds, the bytes in several parts.
func TestCodec(t *testing.T) {
	t.Parallel()
	c := wire.NewCodec()
	for _, value := range []string{"", "a", strings.Repeat("x", 5000)} {
		var read text
		var health healthpb.HealthCheckRequest
		for written, into := range map[any]any{&text{value}: &read, &healthpb.HealthCheckRequest{Service: value}: &health} {
			data, err := c.Marshal(written)
			must.Succeed(t, err)
			whole := data.Materialize()
			half := len(whole) / 2
			parts := mem.BufferSlice{mem.SliceBuffer(whole[:half]), mem.SliceBuffer(whole[half:])}
			must.Succeed(t, c.Unmarshal(parts, into))
			clear(whole)
		}
		if read.value != value || health.GetService() != value {
			t.Errorf("%q is read as %q and %q", value, read.value, health.GetService())
		}
	}
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer("\x0a")}, &text{}); err == nil {
		t.Error("a message without its end is read")
	}
}

// TestEnd writes messages in messages, whose sizes have one, two and three bytes.
func TestEnd(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 127, 128, 129, 16383, 16384} {
		inner := strings.Repeat("x", n)
		dst, start := wire.Begin([]byte("before"), tag)
		dst = wire.End(append(dst, inner...), start)
		want := protowire.AppendString(append([]byte("before"), byte(tag)), inner)
		if !bytes.Equal(dst, want) {
			t.Errorf("%d bytes: %x, want %x", n, dst[:9], want[:9])
		}
	}
}

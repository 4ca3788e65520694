package wire

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Request is a request that is read from its bytes. They may change after ReadWire.
type Request interface{ ReadWire(data []byte) error }

// Response is a response that is written as bytes.
type Response interface{ AppendWire(dst []byte) []byte }

// codec is a codec of gRPC.
type codec struct{ encoding.CodecV2 }

// NewCodec returns the codec for Request, Response, and the generated types of all other messages.
func NewCodec() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

// usualSize is the capacity for a response, in bytes.
const usualSize = 128

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(Response); ok {
		return mem.BufferSlice{mem.SliceBuffer(m.AppendWire(make([]byte, 0, usualSize)))}, nil
	}
	return c.CodecV2.Marshal(v) //nolint:wrapcheck // gRPC says what failed
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(Request)
	if !ok {
		return c.CodecV2.Unmarshal(data, v) //nolint:wrapcheck // likewise
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	return m.ReadWire(b.ReadOnlyData())
}

// Replace returns the service of gRPC that serves one method without the generated types. take returns
// an empty request, and serve gets it with what was read.
func Replace(service grpc.ServiceDesc, method string, take func() Request, serve grpc.UnaryHandler) *grpc.ServiceDesc {
	info := &grpc.UnaryServerInfo{FullMethod: "/" + service.ServiceName + "/" + method}
	service.Methods = slices.Clone(service.Methods)
	i := slices.IndexFunc(service.Methods, func(m grpc.MethodDesc) bool { return m.MethodName == method })
	service.Methods[i].Handler = func(
		_ any, ctx context.Context, read func(any) error, intercept grpc.UnaryServerInterceptor,
	) (any, error) {
		q := take()
		if err := read(q); err != nil {
			return nil, err
		}
		if intercept == nil {
			return serve(ctx, q)
		}
		return intercept(ctx, q, info, serve)
	}
	return &service
}

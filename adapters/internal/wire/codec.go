package wire

import (
	"context"
	stdencoding "encoding"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec is a codec of gRPC. It reads each message from bytes that may change afterwards.
type codec struct{ encoding.CodecV2 }

// NewCodec returns the codec for requests that are a BinaryUnmarshaler, responses that are a
// BinaryAppender, and the generated types of all other messages.
func NewCodec() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

// usualSize is the capacity for a response, in bytes.
const usualSize = 128

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(stdencoding.BinaryAppender); ok {
		b, err := m.AppendBinary(make([]byte, 0, usualSize))
		return mem.BufferSlice{mem.SliceBuffer(b)}, err //nolint:wrapcheck // gRPC says what failed
	}
	return c.CodecV2.Marshal(v) //nolint:wrapcheck // likewise
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(stdencoding.BinaryUnmarshaler)
	if !ok {
		return c.CodecV2.Unmarshal(data, v) //nolint:wrapcheck // likewise
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	return m.UnmarshalBinary(b.ReadOnlyData()) //nolint:wrapcheck // likewise
}

// Replace returns the service of gRPC that serves one method without the generated types. take returns
// an empty request, and serve gets it with what was read.
func Replace(service grpc.ServiceDesc, method string, take func() stdencoding.BinaryUnmarshaler, serve grpc.UnaryHandler) *grpc.ServiceDesc {
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

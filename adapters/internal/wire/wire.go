// Package wire reads and writes the few protobuf messages whose generated types would cost most of a
// call: bytes become the types of the core at once. What it reads is what the library for protobuf reads.
package wire

import (
	"context"
	stdencoding "encoding"
	"errors"
	"slices"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// The types of fields, as the last three bits of their tags.
const (
	Varint = uint64(protowire.VarintType)
	Bytes  = uint64(protowire.BytesType)
)

// sharedText is up to which size the texts of a message share one copy of it. In a larger one each is
// copied by itself, so that one that is kept does not keep the others.
const sharedText = 1 << 10

// Reader reads the fields of a message in their order. For each field that Next finds, the caller must
// call the method for the type of its Tag, or Skip. After an error, it finds no more fields.
type Reader struct {
	data    []byte
	text    string // all of data if that is small; otherwise empty
	at, end int    // of the message that is read, in data
	tag     uint64
	failed  bool
}

// NewReader returns a reader of a message.
func NewReader(data []byte) Reader {
	r := Reader{data: data, end: len(data)}
	if len(data) <= sharedText {
		r.text = string(data)
	}
	return r
}

// Err returns an error if a part of the message that was read is malformed.
func (r *Reader) Err() error {
	if r.failed {
		return errors.New("the message is malformed")
	}
	return nil
}

// Next finds the next field, and reports whether there is one.
func (r *Reader) Next() bool {
	if r.failed || r.at == r.end {
		return false
	}
	r.tag = r.Varint()
	number, kind := protowire.Number(min(r.tag>>3, 1<<30)), protowire.Type(r.tag&7)
	r.failed = r.failed || !number.IsValid() || kind == protowire.EndGroupType
	return !r.failed
}

// Tag returns the number and the type of the field. One with an unexpected type must be skipped.
func (r *Reader) Tag() uint64 { return r.tag }

// Skip skips the value of the field.
func (r *Reader) Skip() {
	r.advance(protowire.ConsumeFieldValue(protowire.Number(r.tag>>3), protowire.Type(r.tag&7), r.data[r.at:r.end]))
}

func (r *Reader) advance(n int) {
	if n < 0 {
		r.failed = true
		return
	}
	r.at += n
}

// Varint returns the value of a field of the type Varint.
func (r *Reader) Varint() uint64 {
	v, n := protowire.ConsumeVarint(r.data[r.at:r.end])
	r.advance(n)
	return v
}

// Bytes returns the value of a field of the type Bytes, which is a part of the message.
func (r *Reader) Bytes() []byte {
	v, n := protowire.ConsumeBytes(r.data[r.at:r.end])
	r.advance(n)
	return v
}

// RawText is Text without a copy: the value is a part of the message.
func (r *Reader) RawText() []byte {
	v := r.Bytes()
	r.failed = r.failed || !utf8.Valid(v)
	return v
}

// Text returns the value of a field of the type Bytes that must be UTF-8.
func (r *Reader) Text() string {
	v := r.RawText()
	if r.text == "" || r.failed {
		return string(v)
	}
	return r.text[r.at-len(v) : r.at]
}

// Enter begins to read the message that the field contains. The caller must pass the result to Leave
// after its last field.
func (r *Reader) Enter() (outer int) {
	v := r.Bytes()
	outer, r.end = r.end, r.at
	r.at -= len(v)
	return outer
}

// Leave ends what Enter began.
func (r *Reader) Leave(outer int) { r.end = outer }

// SkipMessage skips a message without texts that the field contains.
func (r *Reader) SkipMessage() {
	outer := r.Enter()
	for r.Next() {
		r.Skip()
	}
	r.Leave(outer)
}

// AppendVarint appends a field, unless the value is zero.
func AppendVarint(dst []byte, tag, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendVarint(dst, tag), v)
}

// AppendText appends a field, unless the text is empty.
func AppendText(dst []byte, tag uint64, text string) []byte {
	if text == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendVarint(dst, tag), text)
}

// Begin appends the beginning of a field that contains a message. The caller must append the message
// and pass its start to End.
func Begin(dst []byte, tag uint64) (begun []byte, start int) {
	dst = append(protowire.AppendVarint(dst, tag), 0)
	return dst, len(dst)
}

// End completes a field.
func End(dst []byte, start int) []byte {
	n := uint64(len(dst) - start) //nolint:gosec // is not negative
	if n < 1<<7 {
		dst[start-1] = byte(n)
		return dst
	}
	size := protowire.SizeVarint(n)
	dst = append(dst, make([]byte, size-1)...)
	copy(dst[start-1+size:], dst[start:])
	protowire.AppendVarint(dst[:start-1], n)
	return dst
}

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

// The functions of libnghttp2 that this store calls. If it is a shared library of the system, it is
// loaded with the first etcd:// URL; else it is linked.
#pragma once

#include "runtime/lazy_library.hpp"

#include <nghttp2/nghttp2.h>

namespace holdfast::etcd {

#ifdef HOLDFAST_LOADED_NGHTTP2
inline constexpr runtime::lazy_library libnghttp2(HOLDFAST_LOADED_NGHTTP2);
HOLDFAST_LAZY(libnghttp2, nghttp2_http2_strerror);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_callbacks_del);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_callbacks_new);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_callbacks_set_on_data_chunk_recv_callback);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_callbacks_set_on_frame_recv_callback);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_callbacks_set_on_header_callback);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_callbacks_set_on_stream_close_callback);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_client_new);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_del);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_mem_recv);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_mem_send);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_resume_data);
HOLDFAST_LAZY(libnghttp2, nghttp2_session_set_local_window_size);
HOLDFAST_LAZY(libnghttp2, nghttp2_strerror);
HOLDFAST_LAZY(libnghttp2, nghttp2_submit_request);
HOLDFAST_LAZY(libnghttp2, nghttp2_submit_rst_stream);
HOLDFAST_LAZY(libnghttp2, nghttp2_submit_settings);
#else
inline constexpr runtime::lazy_library libnghttp2 = runtime::linked;
#endif

}  // namespace holdfast::etcd

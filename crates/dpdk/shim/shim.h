/* What of DPDK the switch asks for, as plain functions over plain values: no
 * structure of DPDK crosses this line, so none is declared a second time in Rust.
 *
 * It decides nothing and keeps nothing but what drivers say. Functions that can
 * fail answer with a negative errno. src/shim.rs declares the same; the two are
 * kept alike by hand, and by assertions on the sizes. */

#ifndef COMPORTA_SHIM_H
#define COMPORTA_SHIM_H

#include <stdint.h>

/* Where a driver's name and an error's text end at the latest. */
#define SHIM_NAME_LEN 64

/* A frame in DPDK's memory. */
struct shim_frame {
	void *mbuf;      /* the handle that is given back */
	uint8_t *buffer; /* where its first buffer begins */
	uint32_t start;  /* where in it the first piece begins */
	uint32_t piece;  /* bytes of the first piece */
	uint32_t len;    /* all of its bytes */
	uint32_t room;   /* bytes of the buffer, if it is whole, ours alone and of our memory; or 0 */
};

/* A frame that is about to go, in one piece in a buffer of our memory. */
struct shim_leaving {
	uint8_t *buffer; /* where the buffer begins */
	uint32_t start;  /* where in it the frame does */
	uint32_t len;    /* its bytes */
};

/* What a device is. */
struct shim_device {
	char driver[SHIM_NAME_LEN];
	uint8_t address[6];
	uint16_t mtu;
	uint16_t mtu_max; /* 0: it does not say */
	uint16_t receive_queues_max;
	uint16_t transmit_queues_max;
	uint32_t interface; /* the kernel's number of what is behind it, or 0 */
};

/* How a device is to be started. */
struct shim_wish {
	uint16_t receive_queues;
	uint16_t transmit_queues;
	uint16_t descriptors; /* of each queue; the device may have it otherwise */
	uint16_t mtu;         /* 0: as it is */
	uint32_t buffers;     /* frames that its memory holds */
	uint32_t room;        /* bytes of a frame in one buffer */
};

struct shim_link {
	uint32_t mbps; /* 0: unknown */
	uint8_t up;
};

/* What the device itself counts, from its start. */
struct shim_losses {
	uint64_t missed;
	uint64_t receive_errors;
	uint64_t no_buffer;
	uint64_t transmit_errors;
};

int shim_init(int argc, char **argv);
uint32_t shim_said(char *to, uint32_t room);

int shim_probe(const char *arguments, uint16_t *port);
int shim_look(uint16_t port, struct shim_device *device);
int shim_start(uint16_t port, const struct shim_wish *wish, const char *name, void **pool);
void shim_close(uint16_t port);
uint32_t shim_out(const void *pool);
void shim_free(void *pool);

int shim_link(uint16_t port, struct shim_link *link);
int shim_set_link(uint16_t port, int up);
int shim_losses(uint16_t port, struct shim_losses *losses);
int shim_is_removed(uint16_t port);

int shim_enter_thread(void);
void shim_leave_thread(void);

uint32_t shim_receive(uint16_t port, uint16_t queue, const void *pool, struct shim_frame *frames,
		      uint32_t count);
void shim_copy(const struct shim_frame *frame, uint8_t *to);
void shim_release(const struct shim_frame *frames, uint32_t count);
void shim_give_back(uint8_t *buffer);
void shim_reap(uint16_t port, uint16_t queue);
int shim_allocate(void *pool, struct shim_frame *frames, uint32_t count);
uint32_t shim_send(uint16_t port, uint16_t queue, const struct shim_leaving *frames,
		   uint32_t count);

#endif

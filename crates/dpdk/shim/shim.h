/* The parts of DPDK that the switch uses, as functions with plain values: no
 * structure of DPDK appears in this interface, so none is declared again in Rust.
 *
 * The shim makes no decisions, and its only state is the log of the drivers.
 * Functions that can fail return a negative errno. src/shim.rs has the same
 * declarations; assertions on the sizes detect differences. */

#ifndef COMPORTA_SHIM_H
#define COMPORTA_SHIM_H

#include <stdint.h>

/* The size of a driver's name in bytes. */
#define SHIM_NAME_LEN 64

/* A frame in an mbuf. */
struct shim_frame {
	void *mbuf;      /* the mbuf */
	uint8_t *buffer; /* the start of its first buffer */
	uint32_t start;  /* the offset of the first segment in the buffer */
	uint32_t piece;  /* the length of the first segment */
	uint32_t len;    /* the length of the frame */
	uint32_t room;   /* the size of the buffer if the frame can be lent, or 0 */
};

/* A frame to be sent, in one segment in a buffer of our memory. */
struct shim_tx_frame {
	uint8_t *buffer; /* the start of the buffer */
	uint32_t start;  /* the offset of the frame in the buffer */
	uint32_t len;    /* the length of the frame */
};

/* Properties of a device. */
struct shim_device {
	char driver[SHIM_NAME_LEN];
	uint8_t address[6];
	uint16_t mtu;
	uint16_t mtu_max; /* 0: unknown */
	uint16_t receive_queues_max;
	uint16_t transmit_queues_max;
	uint32_t interface; /* the index of the kernel interface behind it, or 0 */
};

/* The configuration with which a device is started. */
struct shim_config {
	uint16_t receive_queues;
	uint16_t transmit_queues;
	uint16_t descriptors; /* of each queue; the driver may adjust it */
	uint16_t mtu;         /* 0: unchanged */
	uint32_t buffers;     /* the size of its memory pool */
	uint32_t room;        /* bytes of a frame in one buffer, without headroom */
};

struct shim_link {
	uint32_t mbps; /* 0: unknown */
	uint8_t up;
};

/* Loss counters of the device since its start. */
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
int shim_start(uint16_t port, const struct shim_config *config, const char *name, void **pool);
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
uint32_t shim_send(uint16_t port, uint16_t queue, const struct shim_tx_frame *frames,
		   uint32_t count);

#endif

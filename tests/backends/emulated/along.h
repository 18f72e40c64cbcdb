/* What a task's launch takes along (device/reduce.h): folds by its last block, which sends the
 * results, and combines by a rider. */
#ifndef PEAL_TESTS_EMULATED_ALONG_H
#define PEAL_TESTS_EMULATED_ALONG_H

template <class type, int combine> static void folding_kernel(const peal_launch launch)
{
    if (!peal_folds_(launch) || !peal_await_folds_(launch))
        return;
    peal_fold_tiles_<type, combine>(launch, 0);
    peal_fold_tiles_<type, combine>(launch, 1);
    peal_send_folds_(launch);
}

template <class type, int combine> static void riding_kernel(const peal_launch launch)
{
    peal_piggyback_<type, combine>(launch);
}

template <class type> static bool equals(type a, type b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (a != a && b != b);
}

/* Reduction 1 of two is folded, by the last of several blocks; a message to somebody else, of the
 * task's tiles, is left alone. */
template <class type, int combine>
static void check_fold_of(type *element, int count, int host_type)
{
    type result = 0, expected = 0, mirrored = 0, other = 3;
    unsigned arrived[4] = {};
    unsigned long long flag = 0, others_flag = 0, credit = 12;
    peal_launch launch = {};

    host_fold(host_type, combine, element, count, 1, &expected);
    launch.fold_bit = 4;
    launch.partial[1] = at(element);
    launch.fold[1] = {count, 5};
    launch.view[5] = at(&result);
    launch.remote_store_count = 2;
    launch.remote_store[0].boxes = 4;
    launch.remote_store[0].view = 5;
    launch.remote_store[0].target = at(&mirrored);
    launch.remote_store[1].boxes = 1;
    launch.remote_store[1].view = 5;
    launch.remote_store[1].target = at(&other);
    launch.wait_count = 2;
    launch.wait[0] = {at(&flag), 1000, 0, 0}; /* of a tile: never there */
    launch.wait[1] = {at(&credit), 12, 0, 0};
    launch.fold_waits = 2;
    launch.write_count = 2;
    launch.write[0].word = at(&others_flag);
    launch.write[0].value = 8;
    launch.write[0].boxes = 1;
    launch.write[1].word = at(&flag);
    launch.write[1].value = 9;
    launch.write[1].boxes = 4;
    launch.arrived = at(arrived);
    start(folding_kernel<type, combine>, 1 + pick(4), 256, launch);
    CHECK(equals(result, expected) && equals(mirrored, expected) && other == 3);
    CHECK(flag == 9 && others_flag == 0 && arrived[0] == 0 && arrived[2] == 0);
}

template <class type, int combine>
static void check_ride_of(const type *element, int rows, int host_type)
{
    enum { WIDTH = 77, PITCH = 90 };
    type result[WIDTH + 1], expected;
    peal_launch launch = {};

    result[WIDTH] = 1;
    launch.piggyback.result = at(result);
    launch.piggyback.rows = rows;
    launch.piggyback.width = WIDTH;
    for (int r = 0; r < rows; r++) /* in any order in memory */
        launch.piggyback.row[r] = at(element + PITCH * (r ^ 1));
    start(riding_kernel<type, combine>, 1, 256, launch);
    for (int i = 0; i < WIDTH; i++) {
        type column[PEAL_LAUNCH_ROWS];
        for (int r = 0; r < rows; r++)
            column[r] = element[PITCH * (r ^ 1) + i];
        host_fold(host_type, combine, column, rows, 1, &expected);
        CHECK(equals(result[i], expected));
    }
    CHECK(result[WIDTH] == 1);
}

template <class type, int combine> static void check_along(int host_type)
{
    static const int counts[] = {1,    2,    7,    8,    9,    257,  2047, 2048,
                                 2049, 4095, 4096, 4097, 5003, 6144, 6152, PEAL_LAUNCH_FOLDED};
    static type element[PEAL_LAUNCH_FOLDED];

    for (type &e : element)
        e = (type)((int)pick(2001) - 1000) / (type)(combine ? 1 : 7);
    for (int count : counts)
        check_fold_of<type, combine>(element, count, host_type);
    for (int rows = 1; rows <= PEAL_LAUNCH_ROWS; rows++)
        check_ride_of<type, combine>(element, rows, host_type);
    element[5] = (type)0.5 != 0 ? (type)NAN : 1;
    check_fold_of<type, combine>(element, 2500, host_type);
}

#endif
